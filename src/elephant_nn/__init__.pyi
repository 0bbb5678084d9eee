from elephant_nn.checking import (
    check_learner as check_learner,
)
from elephant_nn.data.dataset import (
    Dataset as Dataset,
)
from elephant_nn.data.loading import (
    from_arrays as from_arrays,
)
from elephant_nn.data.loading import (
    load as load,
)
from elephant_nn.editing import (
    EditReport as EditReport,
)
from elephant_nn.editing import (
    edit as edit,
)
from elephant_nn.editing import (
    edit_report as edit_report,
)
from elephant_nn.learners.ewc import (
    online_ewc as online_ewc,
)
from elephant_nn.learners.ewc import (
    streaming_ewc as streaming_ewc,
)
from elephant_nn.learners.flymodel import (
    flymodel as flymodel,
)
from elephant_nn.learners.gradient import (
    cross_entropy as cross_entropy,
)
from elephant_nn.learners.gradient import (
    gradient as gradient,
)
from elephant_nn.learners.gradient import (
    squared_error as squared_error,
)
from elephant_nn.learners.learner import (
    Contract as Contract,
)
from elephant_nn.learners.learner import (
    Learner as Learner,
)
from elephant_nn.learners.sdmlp import (
    sdmlp as sdmlp,
)
from elephant_nn.learners.srnn import (
    set_kl as set_kl,
)
from elephant_nn.learners.srnn import (
    sr_nn as sr_nn,
)
from elephant_nn.learners.statistics import (
    RAW_INPUTS as RAW_INPUTS,
)
from elephant_nn.learners.statistics import (
    naive_bayes as naive_bayes,
)
from elephant_nn.learners.statistics import (
    nearest_class_mean as nearest_class_mean,
)
from elephant_nn.learners.statistics import (
    streaming_lda as streaming_lda,
)
from elephant_nn.nn.activations import (
    CLASSICAL as CLASSICAL,
)
from elephant_nn.nn.activations import (
    Activation as Activation,
)
from elephant_nn.nn.activations import (
    elephant as elephant,
)
from elephant_nn.nn.activations import (
    elephant_activation as elephant_activation,
)
from elephant_nn.nn.activations import (
    elephant_slope as elephant_slope,
)
from elephant_nn.nn.activations import (
    elu as elu,
)
from elephant_nn.nn.activations import (
    even_bias as even_bias,
)
from elephant_nn.nn.activations import (
    fan_in_uniform as fan_in_uniform,
)
from elephant_nn.nn.activations import (
    relu as relu,
)
from elephant_nn.nn.activations import (
    sigmoid as sigmoid,
)
from elephant_nn.nn.activations import (
    tanh as tanh,
)
from elephant_nn.nn.convolution import (
    cnn as cnn,
)
from elephant_nn.nn.convolution import (
    convmixer as convmixer,
)
from elephant_nn.nn.networks import (
    Network as Network,
)
from elephant_nn.nn.networks import (
    emlp as emlp,
)
from elephant_nn.nn.networks import (
    mlp as mlp,
)
from elephant_nn.nn.products import (
    thin_product as thin_product,
)
from elephant_nn.nn.sparse import (
    fuzzy_tiling as fuzzy_tiling,
)
from elephant_nn.nn.sparse import (
    maxout as maxout,
)
from elephant_nn.nn.sparse import (
    normalised_emlp as normalised_emlp,
)
from elephant_nn.nn.sparse import (
    winner_take_all as winner_take_all,
)
from elephant_nn.streams.class_incremental import (
    Tasks as Tasks,
)
from elephant_nn.streams.class_incremental import (
    class_incremental as class_incremental,
)
from elephant_nn.streams.metrics import (
    backward_transfer as backward_transfer,
)
from elephant_nn.streams.metrics import (
    forgetting as forgetting,
)
from elephant_nn.streams.metrics import (
    learning_accuracy as learning_accuracy,
)
from elephant_nn.streams.metrics import (
    overall_accuracy as overall_accuracy,
)
from elephant_nn.streams.metrics import (
    task_matrix as task_matrix,
)
from elephant_nn.streams.regression import (
    array_stream as array_stream,
)
from elephant_nn.streams.regression import (
    function_stream as function_stream,
)
from elephant_nn.streams.regression import (
    sine_stream as sine_stream,
)
from elephant_nn.streams.stream import (
    Stream as Stream,
)
from elephant_nn.streams.stream import (
    accuracy as accuracy,
)
from elephant_nn.streams.stream import (
    accuracy_by_class as accuracy_by_class,
)
from elephant_nn.streams.stream import (
    learn as learn,
)
from elephant_nn.streams.stream import (
    shuffled as shuffled,
)
from elephant_nn.theory.kernel import (
    kernel_radius as kernel_radius,
)
from elephant_nn.theory.kernel import (
    normalised_kernel as normalised_kernel,
)
from elephant_nn.theory.kernel import (
    ntk as ntk,
)
from elephant_nn.theory.kernel import (
    ntk_as_printed as ntk_as_printed,
)
from elephant_nn.theory.kernel import (
    ntk_closed_form as ntk_closed_form,
)
from elephant_nn.theory.kernel import (
    update_effect as update_effect,
)
from elephant_nn.theory.sparsity import (
    limit_sparsity as limit_sparsity,
)
from elephant_nn.theory.sparsity import (
    measured_sparsity as measured_sparsity,
)
from elephant_nn.theory.sparsity import (
    slope_of as slope_of,
)
