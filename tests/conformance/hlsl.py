"""Compiles a compute shader in HLSL with Slang's compiler, a library of its Python package. usage: hlsl.py FILE

CANTUS_SLANG_LIBRARY names libslang-compiler.so."""
import ctypes, os, re, sys

SPIRV, HLSL, COMPUTE = 6, 2, 6
try:
    slang = ctypes.CDLL(os.environ['CANTUS_SLANG_LIBRARY'])
except (KeyError, OSError) as error:
    sys.exit(f'no Slang: {error}')
if sys.argv[1] == '--version':
    sys.exit()
for name in ('spCreateSession', 'spCreateCompileRequest', 'spGetDiagnosticOutput'):
    getattr(slang, name).restype = ctypes.c_void_p
text = open(sys.argv[1], 'rb').read()
# Where Slang is no HLSL: its frexp gives whole numbers, and what is constant must not call functions.
text = re.sub(rb'\b(?:float|half)(\d?) other;\n(?=\s*_frexp)', rb'int\1 other;\n', text)
text = re.sub(rb'^static const (?=.*= Construct)', b'static ', text, flags=re.M)
entry = re.search(rb'\[numthreads[^\n]*\]\s*void\s+(\w+)', text).group(1)
request = ctypes.c_void_p(slang.spCreateCompileRequest(ctypes.c_void_p(slang.spCreateSession(None))))
slang.spSetCodeGenTarget(request, SPIRV)
unit = slang.spAddTranslationUnit(request, HLSL, b'')
slang.spAddTranslationUnitSourceString(request, unit, b'text', text)
slang.spAddEntryPoint(request, unit, entry, COMPUTE)
if slang.spCompile(request) != 0:
    sys.exit(ctypes.string_at(slang.spGetDiagnosticOutput(request)).decode('utf8', 'replace'))
