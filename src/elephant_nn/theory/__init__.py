"""The theory of the paper as functions: sparsity, the tangent kernel, local elasticity."""
