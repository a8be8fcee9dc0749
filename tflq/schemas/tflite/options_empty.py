"""Options without fields: a table each, by its number in the union, which code finds under its name as all others."""

from __future__ import annotations

from tflq.schemas.flatbuffer.table import Table
from tflq.schemas.tflite.bases import BuiltinOptions, BuiltinOptions2


def _tables(base: type[Table], **members: int) -> dict[str, type[Table]]:
    """Return {AbsOptions: the table, ...} for Abs=78, ..."""
    made = {}
    for name, member in members.items():
        words = {"__doc__": f"{name}: no options.", "__module__": __name__}
        made[f"{name}Options"] = type(f"{name}Options", (base,), words, member=member)
    return made


globals().update(_tables(
    BuiltinOptions,
    Pad=22, BatchToSpaceND=24, SpaceToBatchND=25, Transpose=26, Exp=33, TopKV2=34, LogSoftmax=36, Dequantize=38,
    MaximumMinimum=39, Less=41, Neg=42, PadV2=43, Greater=44, GreaterEqual=45, LessEqual=46, Select=47, Slice=48,
    Tile=51, ExpandDims=52, Equal=53, NotEqual=54, Pow=56, LogicalOr=60, LogicalAnd=62, LogicalNot=63, FloorDiv=65,
    Square=66, ZerosLike=67, Fill=68, FloorMod=72, Range=73, SquaredDifference=76, Abs=78, ReverseV2=81, AddN=82,
    GatherNd=83, Cos=84, Where=85, Rank=86, MatrixDiag=88, Quantize=89, MatrixSetDiag=90, HardSwish=91,
    NonMaxSuppressionV4=95, NonMaxSuppressionV5=96, ScatterNd=97, SelectV2=98, Densify=99, SegmentSum=100,
    BroadcastTo=104, Rfft2d=105, HashtableFind=108, HashtableImport=109, HashtableSize=110, ReadVariable=112,
    AssignVariable=113, DynamicUpdateSlice=117, UnsortedSegmentProd=118, UnsortedSegmentMax=119,
    UnsortedSegmentMin=120, UnsortedSegmentSum=121, ATan2=122, Sign=123, Bitcast=124, BitwiseXor=125, RightShift=126,
))  # fmt: skip
globals().update(_tables(BuiltinOptions2, Dilate=18, StablehloShiftLeft=22))
