package interop;

/** What happens in a case. */
interface Body {
    void run(Stage stage) throws Exception;
}
