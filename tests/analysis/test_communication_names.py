"""Which kernels move data between devices, by names of many libraries and years."""

import pytest

from workbench.analysis.communication_names import is_communication


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "void rcclGenericKernel<1>(ncclDevKernelArgsStorage<4096ul>)",
        "oneccl_allreduce_bf16",
        "ccl::v1::allgatherv_kernel",
        "hcom_allReduce__123_1_1",
        "CNCL_AllReduce_Ring",
        "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*)",
        "void intranode::combine<__nv_bfloat16, 8, 768, 16384>(...)",
        "nvshmemi_transfer_rma_put_kernel",
        "multimem_all_reduce_kernel<c10::BFloat16, 16>",
        "void vllm::cross_device_reduce_1stage<float, 8>(vllm::RankData*)",
        "all-reduce.17",
    ],
)
def test_collectives_of_every_library_are_communication(name: str) -> None:
    assert is_communication(name)


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_tn",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(...)",
        "void at::native::type_specialized_broadcast_kernel_launcher<1>::apply(...)",
        "void cub::DeviceReduceByKeyKernel<...>",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_up<__hip_bfloat16, 1024u>(...)",
        "_combined_routing_compute",
        "Memcpy PtoP (Device -> Device)",
    ],
)
def test_names_that_only_sound_alike_are_not(name: str) -> None:
    assert not is_communication(name)
