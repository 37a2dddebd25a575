// SPDX-License-Identifier: MIT-0
// bench_extension.cpp: the gate with one λ for float32 as a C++ extension of PyTorch, which
// bench.py --extension builds and measures beside lgelu.gate. lgelu.py doesn't use it: a build
// needs a compiler and PyTorch's headers.
#include <torch/extension.h>
#include <dlfcn.h>

typedef void forward_function(void *y, const void *x, double lambda, size_t n, int type,
                              int threads);
typedef double backward_function(void *dx, const void *dy, const void *x, double lambda, size_t n,
                                 int type, int threads);
static forward_function *forward_of;
static backward_function *backward_of;

// Finds the two functions in liblgelu_torch.so.
static void open_library(const std::string &path)
{
    void *library = dlopen(path.c_str(), RTLD_NOW);
    TORCH_CHECK(library, "bench_extension: cannot open ", path);
    forward_of = (forward_function *)dlsym(library, "lgelu_torch_forward");
    backward_of = (backward_function *)dlsym(library, "lgelu_torch_backward");
    TORCH_CHECK(forward_of && backward_of, "bench_extension: ", path, " lacks a function");
}

struct Gate : torch::autograd::Function<Gate> {
    static torch::Tensor forward(torch::autograd::AutogradContext *ctx, torch::Tensor x,
                                 torch::Tensor lambda)
    {
        ctx->save_for_backward({ x, lambda });
        x = x.contiguous();
        torch::Tensor y = torch::empty_like(x);
        forward_of(y.data_ptr(), x.data_ptr(), lambda.item<double>(), (size_t)x.numel(), 0,
                   at::get_num_threads());
        return y;
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx,
                                                   torch::autograd::variable_list gradients)
    {
        const torch::autograd::variable_list saved = ctx->get_saved_variables();
        const torch::Tensor x = saved[0].contiguous(), lambda = saved[1],
                            dy = gradients[0].contiguous();
        torch::Tensor dx = torch::empty_like(x), dlambda;
        const double sum =
            backward_of(dx.data_ptr(), dy.data_ptr(), x.data_ptr(), lambda.item<double>(),
                        (size_t)x.numel(), 0, at::get_num_threads());
        if (lambda.requires_grad())
            dlambda = torch::full({}, sum, lambda.options().requires_grad(false));
        return { dx, dlambda };
    }
};

static torch::Tensor learned(torch::Tensor x, torch::Tensor lambda)
{
    return Gate::apply(x, lambda);
}

static torch::Tensor driven(torch::Tensor x, double lambda)
{
    return Gate::apply(x, torch::scalar_tensor(lambda));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("open_library", &open_library);
    m.def("learned", &learned);
    m.def("driven", &driven);
}
