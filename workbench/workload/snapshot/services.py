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

# An object that holds one of these is a service too, whatever its class.
SERVICES = frozenset(
    {
        *("_asyncio", "_io", "_queue", "_socket", "_sqlite3", "_ssl", "_thread", "asyncio"),
        *("concurrent", "io", "multiprocessing", "queue", "socket", "sqlite3", "ssl"),
        *("subprocess", "tempfile", "threading"),
    }
)
