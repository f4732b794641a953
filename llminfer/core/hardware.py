"""What a device can do at best, as its makers print it: the two numbers of every roofline, and the sizes kernels meet.

Three habits of data sheets to know before trusting one. "With sparsity" doubles a rate for matrices in which half of
all weights are zero in a 2:4 pattern; ours are not, so every rate here is dense. GeForce cards multiply half-precision
numbers twice as fast when they also add in half precision; every rate here adds in float32. And the bandwidth of a link
is printed with both directions added up; here it is each way.
"""

from dataclasses import dataclass, field
from difflib import get_close_matches

KIB, MIB = 2**10, 2**20
GB = 1e9
TERA = 1e12

# What people write for an element type, and the name under which a device lists its rate.
_DTYPE_NAMES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp8": "float8",
    "float8_e4m3fn": "float8",
    "float8_e5m2": "float8",
    "fp4": "float4",
    "float4_e2m1fn": "float4",
    "uint8": "int8",
    "uint4": "int4",
}


@dataclass(frozen=True)
class Device:
    """A processor and its memory, as peak rates and sizes; None where the maker does not say.

    peak_flops: dense FLOP/s of matrix products by element type ("float32", "tf32", "bfloat16", "float8", "int8" ...),
        with sums kept in float32 (int32 for integers). A multiply and an add are two FLOPs.
    bandwidth: bytes/s between the processor and its main memory (HBM, GDDR, DRAM).
    link_bandwidth: bytes/s to other devices over all links of the kind named by `link`, each way.
    shared_memory_bytes, register_file_bytes: per streaming multiprocessor (AMD: LDS and vector registers of a compute
        unit); shared_memory_per_block_bytes is the most one block (workgroup) may take.
    shared_memory_bandwidth, l2_bandwidth: bytes/s read by all multiprocessors together.
    target: how compilers call its architecture, such as "sm_90" or "gfx942".
    Raises ValueError when a rate or a size is not positive. Book section 3.1.4.
    """

    name: str
    peak_flops: dict[str, float] = field(hash=False)
    memory_bytes: float
    bandwidth: float
    source: str
    l2_bytes: int | None = None
    sms: int | None = None
    shared_memory_bytes: int | None = None
    shared_memory_per_block_bytes: int | None = None
    register_file_bytes: int | None = None
    shared_memory_bandwidth: float | None = None
    l2_bandwidth: float | None = None
    link: str | None = None
    link_bandwidth: float | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        sizes = {"memory_bytes": self.memory_bytes, "bandwidth": self.bandwidth, **self.peak_flops}
        for what, value in sizes.items():
            if not 0 < value < float("inf"):
                raise ValueError(f"{what} of {self.name!r} must be a positive number, got {value}")

    def flops(self, dtype: str = "bfloat16") -> float:
        """Dense peak in FLOP/s for matrix products of `dtype`; common spellings such as "bf16" are understood.

        Raises ValueError if the device has no such rate: a type it only stores is computed in another.
        """
        name = _DTYPE_NAMES.get(dtype, dtype)
        if name not in self.peak_flops:
            raise ValueError(
                f"{self.name} has no arithmetic of its own for {dtype!r}; it has {', '.join(self.peak_flops)}. "
                "Name the type in which the products are computed, not the one in which the weights are stored"
            )
        return self.peak_flops[name]

    def ridge(self, dtype: str = "bfloat16") -> float:
        """FLOPs per byte at which computing takes as long as reading: below it work waits for memory.

        Source: Williams, Waterman and Patterson 2009, "Roofline", section 3.
        """
        return self.flops(dtype) / self.bandwidth


def _rates(**teraflops: float) -> dict[str, float]:
    """Rates in TFLOP/s to FLOP/s; `half` stands for float16 and bfloat16 at once, the rule on tensor cores."""
    half = teraflops.pop("half", None)
    both = {} if half is None else {"bfloat16": half, "float16": half}
    return {dtype: rate * TERA for dtype, rate in (teraflops | both).items()}


def _per_sm(target: str, shared_kib: int, block_kib: int, registers_kib: int = 256) -> dict[str, int | str]:
    """What all devices of one architecture share. Source: CUDA C++ Programming Guide, "Compute Capabilities"."""
    return {
        "target": target,
        "shared_memory_bytes": shared_kib * KIB,
        "shared_memory_per_block_bytes": block_kib * KIB,
        "register_file_bytes": registers_kib * KIB,
    }


_TURING = _per_sm("sm_75", 64, 64)
_AMPERE = _per_sm("sm_80", 164, 163)
_ADA = _per_sm("sm_89", 100, 99)
_HOPPER = _per_sm("sm_90", 228, 227)
_BLACKWELL = _per_sm("sm_100", 228, 227)
_BLACKWELL_RTX = _per_sm("sm_120", 100, 99)
_CDNA3 = _per_sm("gfx942", 64, 64, registers_kib=512)
_CDNA4 = _per_sm("gfx950", 160, 160, registers_kib=512)


def _clocked(sms: int, megahertz: float, l2_bytes_per_clock: int | None = None) -> dict[str, float | int | None]:
    """Multiprocessors, and the bandwidths that follow from the clock at which the tensor peak is reckoned.

    Shared memory has 32 banks of 4 bytes a clock in each multiprocessor. Sources: CUDA C++ Programming Guide, "Shared
    Memory"; for AMD, the peaks of ROCm Compute Profiler. What an L2 delivers a clock only few makers print.
    """
    clock = megahertz * 1e6
    l2_bandwidth = None if l2_bytes_per_clock is None else l2_bytes_per_clock * clock
    return {"sms": sms, "shared_memory_bandwidth": sms * 32 * 4 * clock, "l2_bandwidth": l2_bandwidth}


def _link(name: str, gb_per_s: float) -> dict[str, float | str]:
    return {"link": name, "link_bandwidth": gb_per_s * GB}


_PCIE3 = _link("PCIe 3 x16", 15.75)  # 16 lanes of 8 GT/s, each way, less the 128b/130b line code; then doubling
_PCIE4 = _link("PCIe 4 x16", 31.5)
_PCIE5 = _link("PCIe 5 x16", 63.0)

_A100 = _rates(float32=19.5, tf32=156, half=312, int8=624, int4=1248)
_H100 = _rates(float32=67, tf32=494.5, half=989, float8=1979, int8=1979)
_DRIVER = "L2 and SMs as the driver reports them"
_A100_L2 = 5120  # bytes a clock, read. Source: NVIDIA A100 white paper, "A100 L2 cache"
_CDNA_L2 = 8 * 16 * 128  # dies, channels of each, bytes of each a clock. Source: peaks of ROCm Compute Profiler

# Columns: name, peak rates, memory, bandwidth, source; then what is known beyond. The rates of GeForce cards follow
# from multiprocessors x boost clock x FLOPs per clock (a test does the sum), as NVIDIA prints mostly sparse ones.
DEVICES: dict[str, Device] = {
    "a100-40gb": Device(
        "A100 SXM 40 GB", _A100, 40 * GB, 1.555 * TERA, "NVIDIA A100 data sheet, dense column",
        l2_bytes=40 * MIB, **_clocked(108, 1410, _A100_L2), **_AMPERE, **_link("NVLink 3", 300),
    ),
    "a100-80gb": Device(
        "A100 SXM 80 GB", _A100, 80 * GB, 2.039 * TERA, "NVIDIA A100 data sheet, dense column",
        l2_bytes=40 * MIB, **_clocked(108, 1410, _A100_L2), **_AMPERE, **_link("NVLink 3", 300),
    ),
    "h100-sxm": Device(
        "H100 SXM", _H100, 80 * GB, 3.35 * TERA, f"NVIDIA H100 data sheet, halved where it prints sparse; {_DRIVER}",
        l2_bytes=50 * MIB, **_clocked(132, 1830), **_HOPPER, **_link("NVLink 4", 450),
    ),
    "h100-pcie": Device(
        "H100 PCIe", _rates(float32=51, tf32=378, half=756, float8=1513, int8=1513), 80 * GB, 2.0 * TERA,
        "NVIDIA H100 data sheet, halved where it prints sparse; without the optional NVLink bridge",
        l2_bytes=50 * MIB, **_clocked(114, 1620), **_HOPPER, **_PCIE5,
    ),
    "h200": Device(
        "H200 SXM", _H100, 141 * GB, 4.8 * TERA, f"NVIDIA H200 data sheet, halved where it prints sparse; {_DRIVER}",
        l2_bytes=60 * MIB, **_clocked(132, 1830), **_HOPPER, **_link("NVLink 4", 450),
    ),
    "b200": Device(
        "B200 SXM", _rates(float32=75, tf32=1125, half=2250, float8=4500, int8=4500, float4=9000), 192 * GB, 8.0 * TERA,
        f"NVIDIA HGX B200 data sheet, halved where it prints sparse (sold as 180 GB); {_DRIVER}",
        l2_bytes=126 * MIB, sms=148, **_BLACKWELL, **_link("NVLink 5", 900),
    ),
    "gb200": Device(
        "GB200 (one of its GPUs)", _rates(float32=80, tf32=1250, half=2500, float8=5000, int8=5000, float4=10000),
        192 * GB, 8.0 * TERA, "NVIDIA GB200 NVL72 data sheet, per GPU, halved where it prints sparse",
        **_BLACKWELL, **_link("NVLink 5", 900),
    ),
    "l4": Device(
        "L4", _rates(float32=30.3, tf32=60, half=121, float8=242, int8=242, int4=485), 24 * GB, 0.3 * TERA,
        "NVIDIA L4 data sheet, halved where it prints sparse",
        l2_bytes=48 * MIB, **_clocked(58, 2040), **_ADA, **_PCIE4,
    ),
    "l40s": Device(
        "L40S", _rates(float32=91.6, tf32=183, half=362, float8=733, int8=733, int4=1466), 48 * GB, 0.864 * TERA,
        "NVIDIA L40S data sheet, dense column (sources disagree on its L2: 48 or 96 MiB)",
        **_clocked(142, 2490), **_ADA, **_PCIE4,
    ),
    "t4": Device(
        "T4", _rates(float32=8.1, float16=65, int8=130, int4=260), 16 * GB, 0.32 * TERA,
        "NVIDIA T4 data sheet; Turing has neither bfloat16 nor tf32",
        l2_bytes=4 * MIB, **_clocked(40, 1590), **_TURING, **_PCIE3,
    ),
    "rtx-4070": Device(
        "RTX 4070", _rates(float32=29.15, tf32=29.15, half=58.3, float8=116.6, int8=233.2, int4=466.4), 12 * GB,
        0.504 * TERA, "46 multiprocessors at 2475 MHz, rates per clock of the NVIDIA Ada white paper",
        l2_bytes=36 * MIB, **_clocked(46, 2475), **_ADA, **_PCIE4,
    ),
    "rtx-4090": Device(
        "RTX 4090", _rates(float32=82.6, tf32=82.6, half=165.2, float8=330.3, int8=660.6, int4=1321.2), 24 * GB,
        1.008 * TERA, "NVIDIA Ada GPU architecture white paper, table of the RTX 4090, sums in float32",
        l2_bytes=72 * MIB, **_clocked(128, 2520), **_ADA, **_PCIE4,
    ),
    "rtx-5090": Device(
        "RTX 5090", _rates(float32=104.8, tf32=104.8, half=209.5, float8=419, int8=838, float4=1676), 32 * GB,
        1.792 * TERA, "NVIDIA RTX Blackwell GPU architecture white paper, dense, sums in float32",
        l2_bytes=96 * MIB, **_clocked(170, 2407), **_BLACKWELL_RTX, **_PCIE5,
    ),
    "mi300x": Device(
        "MI300X", _rates(float32=163.4, tf32=653.7, half=1307.4, float8=2614.9, int8=2614.9), 192 * GB, 5.3 * TERA,
        "AMD MI300X data sheet, dense; ROCm GPU specifications (behind the L2 lies a 256 MiB Infinity Cache)",
        l2_bytes=32 * MIB, **_clocked(304, 2100, _CDNA_L2), **_CDNA3, **_link("Infinity Fabric, 7 links", 448),
    ),
    "mi350x": Device(
        "MI350X", _rates(float32=144.2, half=2306.9, float8=4613.7, int8=4613.7, float4=9227.5), 288 * GB, 8.0 * TERA,
        "256 compute units at 2200 MHz; ROCm GPU specifications (behind the L2 lies a 256 MiB Infinity Cache)",
        l2_bytes=32 * MIB, **_clocked(256, 2200, _CDNA_L2), **_CDNA4, **_link("Infinity Fabric, 7 links", 537.6),
    ),
    "mi355x": Device(
        "MI355X", _rates(float32=157.3, half=2516.6, float8=5033.2, int8=5033.2, float4=10066.3), 288 * GB, 8.0 * TERA,
        "256 compute units at 2400 MHz; tables that print 2300 TFLOP/s give the rate of the slower-clocked MI350X",
        l2_bytes=32 * MIB, **_clocked(256, 2400, _CDNA_L2), **_CDNA4, **_link("Infinity Fabric, 7 links", 537.6),
    ),
    "tpu-v5e": Device(
        "TPU v5e", _rates(bfloat16=197, int8=394), 16 * GB, 0.82 * TERA,
        "Google Cloud TPU v5e page (819 GB/s), rounded as in the Scaling Book; some old tables say 1.6 TB/s",
        **_link("ICI, 2D torus", 200),
    ),
    "tpu-v5p": Device(
        "TPU v5p", _rates(bfloat16=459, int8=918), 95 * GB, 2.8 * TERA,
        "Google Cloud TPU v5p page (2765 GB/s), rounded as in the Scaling Book", **_link("ICI, 3D torus", 600),
    ),
    "tpu-v6e": Device(
        "TPU v6e", _rates(bfloat16=918, int8=1836), 32 * GB, 1.6 * TERA,
        "Google Cloud TPU v6e page", **_link("ICI, 2D torus", 400),
    ),
}  # fmt: skip


def device(name: str) -> Device:
    """The row of `DEVICES` under a name such as "h100-sxm", "RTX 4070" or "mi300x", however it is capitalised.

    Raises ValueError with the nearest names for one that is not in the table. Book section 3.1.4.
    """
    key = name.strip().lower().replace(" ", "-").replace("_", "-")
    if key in DEVICES:
        return DEVICES[key]
    near = [known for known in DEVICES if known.startswith(key)] or get_close_matches(key, DEVICES, n=3, cutoff=0.5)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(DEVICES)}."
    raise ValueError(f"no device called {name!r} in the table; {remedy} Describe any other with Device(...)")
