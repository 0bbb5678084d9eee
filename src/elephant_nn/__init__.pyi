from elephant_nn.calibration import (
    Calibration as Calibration,
    calibrate as calibrate,
)
from elephant_nn.checking import (
    check_learner as check_learner,
)
from elephant_nn.data.dataset import (
    Dataset as Dataset,
)
from elephant_nn.data.loading import (
    from_arrays as from_arrays,
    load as load,
)
from elephant_nn.data_checks import (
    Check as Check,
)
from elephant_nn.diagnosis import (
    Diagnosis as Diagnosis,
    diagnose as diagnose,
)
from elephant_nn.editing import (
    EditReport as EditReport,
    edit as edit,
    edit_report as edit_report,
)
from elephant_nn.learners.augmentation import (
    with_mirrored as with_mirrored,
)
from elephant_nn.learners.ewc import (
    online_ewc as online_ewc,
    streaming_ewc as streaming_ewc,
)
from elephant_nn.learners.flymodel import (
    flymodel as flymodel,
)
from elephant_nn.learners.gradient import (
    cross_entropy as cross_entropy,
    gradient as gradient,
    squared_error as squared_error,
)
from elephant_nn.learners.learner import (
    Contract as Contract,
    Learner as Learner,
)
from elephant_nn.learners.recipe import (
    inject_hyperparams as inject_hyperparams,
)
from elephant_nn.learners.ridge import (
    ridge_head as ridge_head,
)
from elephant_nn.learners.scaling import (
    first_batch_scaling as first_batch_scaling,
)
from elephant_nn.learners.sdmlp import (
    sdmlp as sdmlp,
)
from elephant_nn.learners.srnn import (
    set_kl as set_kl,
    sr_nn as sr_nn,
)
from elephant_nn.learners.statistics import (
    RAW_INPUTS as RAW_INPUTS,
    naive_bayes as naive_bayes,
    nearest_class_mean as nearest_class_mean,
    streaming_lda as streaming_lda,
)
from elephant_nn.nn.activations import (
    CLASSICAL as CLASSICAL,
    Activation as Activation,
    elephant as elephant,
    elephant_activation as elephant_activation,
    elephant_slope as elephant_slope,
    elu as elu,
    even_bias as even_bias,
    fan_in_uniform as fan_in_uniform,
    relu as relu,
    sigmoid as sigmoid,
    tanh as tanh,
)
from elephant_nn.nn.convolution import (
    cnn as cnn,
    convmixer as convmixer,
)
from elephant_nn.nn.fourier import (
    fourier_features as fourier_features,
)
from elephant_nn.nn.networks import (
    Network as Network,
    emlp as emlp,
    mlp as mlp,
)
from elephant_nn.nn.patches import (
    patch_features as patch_features,
    shifted_elephant as shifted_elephant,
    soft_threshold as soft_threshold,
)
from elephant_nn.nn.products import (
    thin_product as thin_product,
)
from elephant_nn.nn.sparse import (
    fuzzy_tiling as fuzzy_tiling,
    maxout as maxout,
    normalised_emlp as normalised_emlp,
    winner_take_all as winner_take_all,
)
from elephant_nn.states import (
    load_state as load_state,
    save_state as save_state,
)
from elephant_nn.streams.class_incremental import (
    Tasks as Tasks,
    class_incremental as class_incremental,
)
from elephant_nn.streams.metrics import (
    backward_transfer as backward_transfer,
    forgetting as forgetting,
    learning_accuracy as learning_accuracy,
    overall_accuracy as overall_accuracy,
    task_matrix as task_matrix,
)
from elephant_nn.streams.samples import (
    function_stream as function_stream,
    sample_stream as sample_stream,
    sine_stream as sine_stream,
)
from elephant_nn.streams.stream import (
    Stream as Stream,
    accuracy as accuracy,
    accuracy_by_class as accuracy_by_class,
    learn as learn,
    shuffled as shuffled,
)
from elephant_nn.theory.kernel import (
    kernel_radius as kernel_radius,
    normalised_kernel as normalised_kernel,
    ntk as ntk,
    ntk_as_printed as ntk_as_printed,
    ntk_closed_form as ntk_closed_form,
    update_effect as update_effect,
)
from elephant_nn.theory.sparsity import (
    limit_sparsity as limit_sparsity,
    measured_sparsity as measured_sparsity,
    slope_of as slope_of,
)
