package interop;

import java.util.function.BiConsumer;

/** Some cases that belong together. */
interface Program {
    void list(BiConsumer<String, Body> cases);
}
