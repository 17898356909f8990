"""Which objects are not training state, whatever they hold: tables of package names."""

# Services, windows and data frames of other packages.
LEFT_ALONE = frozenset(
    {
        *("IPython", "PIL", "av", "cv2", "dask", "datasets", "h5py", "ipykernel"),
        *("ipywidgets", "jax", "lmdb", "matplotlib", "mlflow", "pandas", "plotly"),
        *("polars", "pyarrow", "ray", "scipy", "tensorboard", "tensorboardX", "tensorflow"),
        *("tqdm", "traitlets", "wandb", "workbench", "zarr", "zmq"),
    }
)

# Of the standard library only plain containers and helpers are looked into.
PLAIN_STDLIB = frozenset(
    {
        *("__builtin__", "abc", "argparse", "builtins", "collections", "contextlib"),
        *("dataclasses", "functools", "types", "typing"),
    }
)

# An object that holds one of these may be used by another thread at any time: its own attributes
# are not touched, only models, optimizers, tensors and random generators in it.
CONCURRENT = frozenset(
    {
        *("_asyncio", "_queue", "_thread", "asyncio", "concurrent", "multiprocessing"),
        *("queue", "threading"),
    }
)
