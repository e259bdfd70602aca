package interop;

/** Something that may fail and gives nothing back. */
interface Action {
    void run() throws Exception;
}
