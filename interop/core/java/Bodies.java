package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageEOFException;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientConsumer;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientSession;

/** What is in a message, as another connection gets it. */
final class Bodies implements Program {
    /** A letter of two units, one of three bytes, one of two, and a NUL. */
    private static final String STRANGE = "\uD83D\uDE00 \u20AC \u00E9 \u0000.";

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (int length : new int[] {0, 1, 8, 9, 4094, 4095, 4096, 70_000}) {
            cases.accept("text of " + length, stage -> text(stage, "a".repeat(length)));
        }
        cases.accept("no text", stage -> text(stage, null));
        cases.accept("strange letters", stage -> text(stage, STRANGE));
        cases.accept("many strange letters", stage -> text(stage, STRANGE.repeat(1_000)));
        cases.accept("half a letter", stage -> text(stage, "\uD83D!"));
        cases.accept("bytes", Bodies::bytes);
        cases.accept("map", Bodies::map);
        cases.accept("stream", Bodies::stream);
        cases.accept("object", Bodies::object);
        cases.accept("nothing in it", Bodies::empty);
        cases.accept("properties of all kinds", Bodies::properties);
        cases.accept("property names", Bodies::names);
        cases.accept("properties of the core API", Bodies::coreProperties);
        for (int type : new int[] {0, 2, 3, 4, 5, 6, 1, 100}) {
            cases.accept("core type " + type, stage -> coreType(stage, type));
        }
    }

    private interface Writer {
        Message write(Session session) throws JMSException;
    }

    /** What another connection gets of it. */
    private static Message through(Stage stage, Writer writer) throws JMSException {
        Session session = stage.auto();
        session.createProducer(stage.queue()).send(writer.write(session));
        return stage.next(stage.queue());
    }

    private static void text(Stage stage, String text) throws Exception {
        Message message = through(stage, session -> session.createTextMessage(text));
        String got = ((TextMessage) message).getText();
        stage.say("%s", text == null ? "text " + got : "same: " + text.equals(got));
    }

    private static void bytes(Stage stage) throws Exception {
        BytesMessage message = (BytesMessage) through(stage, session -> {
            BytesMessage made = session.createBytesMessage();
            made.writeBoolean(true);
            made.writeByte((byte) -1);
            made.writeShort((short) -2);
            made.writeChar('\u20AC');
            made.writeInt(-3);
            made.writeLong(-4);
            made.writeFloat(1.5f);
            made.writeDouble(-2.5);
            made.writeUTF(STRANGE);
            made.writeBytes(new byte[] {1, 2, 3});
            return made;
        });
        stage.say("length %d", message.getBodyLength());
        stage.say("%s %d %d %s %d %d %s %s", message.readBoolean(), message.readByte(), message.readShort(),
                message.readChar(), message.readInt(), message.readLong(), message.readFloat(), message.readDouble());
        stage.say("%s", STRANGE.equals(message.readUTF()));
        byte[] rest = new byte[10];
        stage.say("%d bytes %s, then %d", message.readBytes(rest), Arrays.toString(rest), message.readBytes(rest));
        stage.attempt("read on", message::readByte);
    }

    private static void map(Stage stage) throws Exception {
        MapMessage message = (MapMessage) through(stage, session -> {
            MapMessage made = session.createMapMessage();
            made.setBoolean("boolean", true);
            made.setByte("byte", (byte) -1);
            made.setShort("short", (short) -2);
            made.setChar("char", '\u20AC');
            made.setInt("int", -3);
            made.setLong("long", -4);
            made.setFloat("float", 1.5f);
            made.setDouble("double", -2.5);
            made.setString("string", STRANGE);
            made.setString("none", null);
            made.setBytes("bytes", new byte[] {1, 2, 3});
            return made;
        });
        List<String> names = new ArrayList<>();
        for (Enumeration<?> all = message.getMapNames(); all.hasMoreElements(); ) {
            names.add((String) all.nextElement());
        }
        Collections.sort(names);
        for (String name : names) {
            stage.say("%s: %s", name, shown(message.getObject(name)));
        }
    }

    private static void stream(Stage stage) throws Exception {
        StreamMessage message = (StreamMessage) through(stage, session -> {
            StreamMessage made = session.createStreamMessage();
            Object[] all = {true, (byte) -1, (short) -2, '\u20AC', -3, -4L, 1.5f, -2.5, STRANGE, null, new byte[] {1, 2}};
            for (Object one : all) {
                made.writeObject(one);
            }
            made.writeString("7");
            return made;
        });
        for (int count = 0; count < 11; count++) {
            stage.say("%s", shown(message.readObject()));
        }
        stage.say("as a number: %d", message.readInt());
        try {
            stage.say("and %s", message.readObject());
        } catch (MessageEOFException end) {
            stage.say("the end");
        }
    }

    private static void object(Stage stage) throws Exception {
        Object thing = new ArrayList<>(List.of("a", 1, 2.5));
        Message message = through(stage, session -> session.createObjectMessage((ArrayList<?>) thing));
        stage.say("same: %s", thing.equals(((ObjectMessage) message).getObject()));
        message = through(stage, Session::createObjectMessage);
        stage.say("nothing: %s", ((ObjectMessage) message).getObject());
    }

    private static void empty(Stage stage) throws Exception {
        Writer[] writers = {Session::createMessage, Session::createBytesMessage, Session::createMapMessage,
            Session::createStreamMessage, Session::createTextMessage};
        for (Writer writer : writers) {
            Message message = through(stage, writer);
            stage.say("%s", message.getClass().getSimpleName());
            if (message instanceof BytesMessage) {
                stage.say("length %d", ((BytesMessage) message).getBodyLength());
            } else if (message instanceof MapMessage) {
                stage.say("names: %s", ((MapMessage) message).getMapNames().hasMoreElements());
            } else if (message instanceof StreamMessage) {
                stage.attempt("read", ((StreamMessage) message)::readObject);
            }
        }
    }

    private static void properties(Stage stage) throws Exception {
        sayProperties(stage, through(stage, session -> {
            Message made = session.createMessage();
            made.setBooleanProperty("boolean", true);
            made.setByteProperty("byte", (byte) -1);
            made.setShortProperty("short", (short) -2);
            made.setIntProperty("int", -3);
            made.setLongProperty("long", -4);
            made.setFloatProperty("float", 1.5f);
            made.setDoubleProperty("double", -2.5);
            made.setStringProperty("string", STRANGE);
            made.setStringProperty("empty", "");
            made.setStringProperty("none", null);
            made.setStringProperty("long_text", "x".repeat(40_000));
            return made;
        }));
    }

    private static void names(Stage stage) throws Exception {
        sayProperties(stage, through(stage, session -> {
            Message made = session.createMessage();
            for (String name : new String[] {"a", "_b", "$c", "d.e", "\u00E9", "x-y"}) {
                try {
                    made.setStringProperty(name, name);
                } catch (JMSException | RuntimeException refused) {
                    stage.say("%s: %s", name, stage.describe(refused));
                }
            }
            return made;
        }));
    }

    private static void sayProperties(Stage stage, Message message) throws JMSException {
        List<String> names = new ArrayList<>();
        for (Enumeration<?> all = message.getPropertyNames(); all.hasMoreElements(); ) {
            names.add((String) all.nextElement());
        }
        Collections.sort(names);
        for (String name : names) {
            stage.say("%s: %s", name, shown(message.getObjectProperty(name)));
        }
    }

    private static String shown(Object value) {
        if (value == null) {
            return "null";
        }
        Object text = value instanceof byte[] ? Arrays.toString((byte[]) value) : value;
        boolean strange = STRANGE.equals(value);
        String short_ = text.toString().length() > 60 ? text.toString().length() + " letters" : text.toString();
        return value.getClass().getSimpleName() + " " + (strange ? "of strange letters" : short_);
    }

    private static ClientMessage coreThrough(Stage stage, int type, java.util.function.Consumer<ClientMessage> writer)
            throws Exception {
        ClientSession session = stage.core();
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        ClientMessage made = session.createMessage((byte) type, true, 0, 5_000, (byte) 4);
        writer.accept(made);
        session.createProducer(stage.own("")).send(made);
        ClientConsumer consumer = stage.core().createConsumer(stage.own(""));
        ClientMessage got = consumer.receive(Scene.LONG_MS);
        got.acknowledge();
        return got;
    }

    private static void coreProperties(Stage stage) throws Exception {
        ClientMessage got = coreThrough(stage, 0, made -> {
            made.putCharProperty(new SimpleString("char"), '\u20AC');
            made.putBytesProperty("bytes", new byte[] {1, 2, 3});
            made.putObjectProperty("null", null);
            made.putStringProperty("a b", "with a space in its name");
            made.putStringProperty("", "of no name");
            made.putByteProperty("byte", (byte) 3);
        });
        got.getPropertyNames().stream().map(SimpleString::toString).sorted()
                .forEach(name -> stage.say("'%s': %s", name, shown(got.getObjectProperty(name))));
    }

    private static void coreType(Stage stage, int type) throws Exception {
        ClientMessage got = coreThrough(stage, type, made -> made.getBodyBuffer().writeBytes(new byte[] {9, 8, 7, 6, 5}));
        byte[] body = new byte[got.getBodyBuffer().readableBytes()];
        got.getBodyBuffer().readBytes(body);
        stage.say("type %d durable %s time %d priority %d: %s", got.getType(), got.isDurable(), got.getTimestamp(),
                got.getPriority(), Arrays.toString(body));
    }
}
