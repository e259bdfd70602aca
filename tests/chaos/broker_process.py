"""The broker that is killed: its addresses, and a look at its journal files."""

import struct
from pathlib import Path

from delosmq.testing.processes.broker_process import USER as USER
from delosmq.testing.processes.broker_process import BrokerProcess as RealBroker

PASSWORD = "chaos"
# Where a journal file says which segment it holds. Source: docs/storage-format.md, file header.
SEGMENT_NUMBER = struct.Struct("<16xQ")
ADDRESSES = """
         <address name="orders">
            <multicast>
               <queue name="orders.work"/>
               <queue name="orders.archive"/>
            </multicast>
         </address>"""


class BrokerProcess(RealBroker):
    """One instance directory and, while it runs, its process.

    Args:
        file_size: ``journal-file-size``.
        addresses: what follows ``<addresses>`` in broker.xml.
        settings: the same of ``<address-settings>``.
    """

    def __init__(self, directory: Path, file_size: str, addresses: str = ADDRESSES, settings: str = "") -> None:
        changes = [
            ("<journal-file-size>64M<", f"<journal-file-size>{file_size}<"),
            ("<addresses>", f"<addresses>{addresses}"),
            ("<address-settings>", f"<address-settings>{settings}"),
        ]
        super().__init__(directory, changes, password=PASSWORD)

    def segments(self) -> dict[str, int]:
        """File -> number of the segment it holds or is prepared for."""
        found = {}
        for path in sorted((self.directory / "data" / "journal").glob("*.dmq")):
            try:
                with path.open("rb") as file:
                    header = file.read(SEGMENT_NUMBER.size)
            except FileNotFoundError:
                continue  # removed since it was listed
            if len(header) == SEGMENT_NUMBER.size:
                found[path.name] = int(SEGMENT_NUMBER.unpack(header)[0])
        return found
