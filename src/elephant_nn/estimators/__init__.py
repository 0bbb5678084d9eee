"""What the estimators for scikit-learn and River share: scaling, hidden layer, models, files."""
