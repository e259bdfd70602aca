"""Stored forms of passwords: argon2id, which DelosMQ writes, and the one-way hash of Artemis, which it reads."""

import base64
import hashlib
import hmac
from typing import Final

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

SALT_BYTES: Final = 16
HASH_BYTES: Final = 32

# 19 MiB, two passes, one lane. Source: OWASP Password Storage Cheat Sheet, argon2id minimum.
_MEMORY_KIB: Final = 19 * 1024
_PASSES: Final = 2
_LANES: Final = 1
_HASHER: Final = PasswordHasher(
    time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=_LANES, hash_len=HASH_BYTES, salt_len=SALT_BYTES
)

# What a line of artemis-users.properties may ask of us at each login; more is a mistake or an attack.
_MAX_MEMORY_KIB: Final = 1024 * 1024
_MAX_PASSES: Final = 100
_MAX_ITERATIONS: Final = 10_000_000
_MAX_HEX_DIGITS: Final = 512

_ARGON2ID_PREFIX: Final = "$argon2id$"
_MASK_PREFIX: Final = "ENC("
_MASK_SUFFIX: Final = ")"

# What an unknown user is compared with, so that asking for one takes as long as asking for a known one. Written out:
# computing it would cost every start tens of milliseconds. No login can match it, see `verify_login`.
_NO_USER_ARGON2ID: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$ZGVsb3NtcS1ub2JvZHktMA$FOM2G6g6SpKQip/GKLFLYEyCdFLhaBK3aU/ViTFCYKc"
)
_NO_USER_MASKED: Final = "ENC(1024:" + "00" * 32 + ":" + "00" * 64 + ")"


def hash_password(password: str, salt: bytes) -> str:
    """The form in which ``password`` is kept: argon2id, 19 MiB, two passes.

    Takes tens of milliseconds; never call it on an event loop.

    Args:
        salt: `SALT_BYTES` random bytes, fresh for each password.
    """
    return _HASHER.hash(_as_bytes(password), salt=salt)


def unmatched_form(salt: bytes, digest: bytes) -> str:
    """A stored form that no password matches and that costs as much to verify as any other; made at once.

    Args:
        salt, digest: `SALT_BYTES` and `HASH_BYTES` random bytes.
    """
    encoded = [base64.b64encode(part).decode("ascii").rstrip("=") for part in (salt, digest)]
    return f"{_ARGON2ID_PREFIX}v=19$m={_MEMORY_KIB},t={_PASSES},p={_LANES}${encoded[0]}${encoded[1]}"


def flaw_of_stored(stored: str) -> str:
    """Why ``stored`` can't be verified against, as the rest of a sentence; "" when it can."""
    if stored.startswith(_ARGON2ID_PREFIX):
        return _flaw_of_argon2id(stored)
    if stored.startswith(_MASK_PREFIX) and stored.endswith(_MASK_SUFFIX):
        return _flaw_of_masked(stored)
    return "is plain text, and DelosMQ keeps no passwords in plain text"


def verify_password(stored: str, password: str) -> bool:
    """Whether ``password`` is the one that ``stored`` was made from.

    Takes tens of milliseconds for argon2id; run it in a worker.
    """
    if stored.startswith(_ARGON2ID_PREFIX):
        return _verify_argon2id(stored, password)
    return flaw_of_stored(stored) == "" and _verify_masked(stored, password)


def verify_login(stored: str, password: str) -> bool:
    """As `verify_password`, but costs the same whatever ``stored`` is; "" stands for an unknown user.

    Takes tens of milliseconds; run it in a worker.
    """
    is_argon2id = stored.startswith(_ARGON2ID_PREFIX)
    is_masked = stored.startswith(_MASK_PREFIX) and flaw_of_stored(stored) == ""
    argon2id_matches = _verify_argon2id(stored if is_argon2id else _NO_USER_ARGON2ID, password)
    masked_matches = _verify_masked(stored if is_masked else _NO_USER_MASKED, password)
    return (is_argon2id and argon2id_matches) or (is_masked and masked_matches)


def _verify_argon2id(stored: str, password: str) -> bool:
    try:
        return _HASHER.verify(stored, _as_bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _verify_masked(stored: str, password: str) -> bool:
    # ENC(iterations:salt:hash), PBKDF2 with HMAC-SHA1, salt and hash in hexadecimal; the hash's length is the key's.
    # Source: Artemis, DefaultSensitiveStringCodec with algorithm one-way (1024 iterations, 32 and 64 bytes).
    iterations, salt, expected = _masked_parts(stored)
    found = hashlib.pbkdf2_hmac("sha1", _as_bytes(password), salt, iterations, len(expected))
    return hmac.compare_digest(found, expected)


def _masked_parts(stored: str) -> tuple[int, bytes, bytes]:
    iterations, salt, expected = stored[len(_MASK_PREFIX) : -len(_MASK_SUFFIX)].split(":")
    return int(iterations), bytes.fromhex(salt), bytes.fromhex(expected)


def _flaw_of_masked(stored: str) -> str:
    parts = stored[len(_MASK_PREFIX) : -len(_MASK_SUFFIX)].split(":")
    if len(parts) == 1:
        return "is encrypted in Artemis's two-way form, which all who have the key can read back"
    if len(parts) != 3 or not parts[0].isascii() or not parts[0].isdigit():
        return "is not of the form ENC(iterations:salt:hash)"
    if not 1 <= int(parts[0][:9]) <= _MAX_ITERATIONS or len(parts[0]) > 8:
        return f"asks for {parts[0][:20]} iterations; 1 to {_MAX_ITERATIONS} are allowed"
    for part in parts[1:]:
        if not part or len(part) % 2 or len(part) > _MAX_HEX_DIGITS or not _is_hex(part):
            return "is not of the form ENC(iterations:salt:hash) with salt and hash in hexadecimal"
    return ""


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdefABCDEF" for digit in text)


def _flaw_of_argon2id(stored: str) -> str:
    try:
        asked = extract_parameters(stored)
    except InvalidHashError:
        return "is not a complete argon2id hash"
    if asked.type is not Type.ID:
        return "is not a complete argon2id hash"
    if asked.memory_cost > _MAX_MEMORY_KIB or asked.time_cost > _MAX_PASSES:
        return f"asks for more than {_MAX_MEMORY_KIB // 1024} MiB or {_MAX_PASSES} passes at each login"
    return ""


def _as_bytes(password: str) -> bytes:
    # surrogatepass: what came from a peer must never raise, it just doesn't match.
    return password.encode("utf-8", "surrogatepass")
