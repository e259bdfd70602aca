package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.client.ClientConsumer;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSConstants;

/** All modes: what comes back, and with which count, when a consumer leaves. */
final class Acknowledgement implements Program {
    private static final Map<String, Integer> MODES = new LinkedHashMap<>();

    static {
        MODES.put("AUTO", Session.AUTO_ACKNOWLEDGE);
        MODES.put("CLIENT", Session.CLIENT_ACKNOWLEDGE);
        MODES.put("DUPS_OK", Session.DUPS_OK_ACKNOWLEDGE);
        MODES.put("INDIVIDUAL", ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE);
        MODES.put("PRE", ActiveMQJMSConstants.PRE_ACKNOWLEDGE);
    }

    @Override
    public void list(BiConsumer<String, Body> cases) {
        MODES.forEach((name, mode) -> {
            for (String way : new String[] {"consumer", "session", "connection", "cut"}) {
                cases.accept(name + " leaves by " + way, stage -> leaves(stage, mode, way));
            }
        });
        cases.accept("CLIENT recovers", stage -> recovers(stage, Session.CLIENT_ACKNOWLEDGE));
        cases.accept("AUTO recovers", stage -> recovers(stage, Session.AUTO_ACKNOWLEDGE));
        cases.accept("INDIVIDUAL recovers", stage -> recovers(stage, ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE));
        cases.accept("INDIVIDUAL out of order", Acknowledgement::outOfOrder);
        cases.accept("CLIENT acknowledges for all consumers", Acknowledgement::allConsumers);
        cases.accept("blocking acknowledgements", Acknowledgement::blocking);
        cases.accept("a listener that throws", Acknowledgement::throwing);
        cases.accept("core up to one", stage -> core(stage, false));
        cases.accept("core one by one", stage -> core(stage, true));
        cases.accept("core twice", Acknowledgement::twice);
    }

    private static void leaves(Stage stage, int mode, String way) throws Exception {
        stage.send(stage.queue(), 4);
        Cut cut = new Cut(stage.host(), stage.port());
        Connection connection = stage.started(stage.own(""), Stage.url(cut.port()));
        Session session = connection.createSession(false, mode);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        List<Message> got = stage.receive("received", consumer, 3);
        if (mode == Session.CLIENT_ACKNOWLEDGE || mode == ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE) {
            got.get(1).acknowledge();
        }
        // The answer comes when the broker has done all before it.
        session.createQueue(stage.own(""));
        switch (way) {
            case "consumer":
                consumer.close();
                session.close();
                break;
            case "session":
                session.close();
                break;
            case "connection":
                connection.close();
                break;
            default:
                cut.cut();
                stage.gone(stage.own(""));
        }
        stage.drain("left", stage.queue());
        cut.close();
    }

    private static void recovers(Stage stage, int mode) throws Exception {
        stage.send(stage.queue(), 4);
        Session session = stage.session(mode);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("first", consumer, 2);
        session.recover();
        List<Message> again = stage.receive("then", consumer, mode == Session.AUTO_ACKNOWLEDGE ? 2 : 4);
        again.get(again.size() - 1).acknowledge();
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void outOfOrder(Stage stage) throws Exception {
        stage.send(stage.queue(), 5);
        Session session = stage.session(ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE);
        List<Message> got = stage.receive("received", session.createConsumer(stage.queue()), 5);
        got.get(3).acknowledge();
        got.get(1).acknowledge();
        got.get(1).acknowledge();
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void allConsumers(Stage stage) throws Exception {
        stage.send(stage.queue(".a"), 3);
        stage.send(stage.queue(".b"), 3);
        Session session = stage.session(Session.CLIENT_ACKNOWLEDGE);
        List<Message> got = stage.receive("a", session.createConsumer(stage.queue(".a")), 2);
        stage.receive("b", session.createConsumer(stage.queue(".b")), 2);
        got.get(0).acknowledge();
        session.close();
        stage.drain("a left", stage.queue(".a"));
        stage.drain("b left", stage.queue(".b"));
    }

    private static void blocking(Stage stage) throws Exception {
        stage.send(stage.queue(), 4);
        Session session = stage.auto("blockOnAcknowledge=true");
        stage.receive("received", session.createConsumer(stage.queue()), 3);
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void throwing(Stage stage) throws Exception {
        stage.send(stage.queue(), 2);
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch done = new CountDownLatch(4);
        Session session = stage.auto();
        session.createConsumer(stage.queue()).setMessageListener(message -> {
            try {
                seen.add(Stage.show(message));
            } catch (JMSException error) {
                seen.add(error.toString());
            }
            done.countDown();
            if (seen.size() < 3) {
                throw new IllegalStateException("not yet");
            }
        });
        Scene.await(done);
        session.close();
        stage.say("%s", seen);
        stage.drain("left", stage.queue());
    }

    private static List<ClientMessage> receive(Stage stage, ClientConsumer consumer, int count) throws Exception {
        List<ClientMessage> got = new ArrayList<>();
        List<String> shown = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            ClientMessage message = consumer.receive(Scene.LONG_MS);
            got.add(message);
            shown.add(message.getIntProperty("n") + " #" + message.getDeliveryCount());
        }
        stage.say("received %s", shown);
        return got;
    }

    private static ClientSession filled(Stage stage, int count) throws Exception {
        ClientSession session = stage.core(true, false);
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        ClientProducer producer = session.createProducer(stage.own(""));
        for (int number = 1; number <= count; number++) {
            producer.send(session.createMessage(true).putIntProperty("n", number));
        }
        return session;
    }

    private static void core(Stage stage, boolean single) throws Exception {
        ClientSession session = filled(stage, 5);
        ClientConsumer consumer = session.createConsumer(stage.own(""));
        ClientMessage third = receive(stage, consumer, 4).get(2);
        if (single) {
            third.individualAcknowledge();
        } else {
            third.acknowledge();
        }
        session.commit();
        session.close();
        receive(stage, stage.core().createConsumer(stage.own("")), single ? 4 : 2);
    }

    private static void twice(Stage stage) throws Exception {
        ClientSession session = filled(stage, 3);
        ClientMessage first = receive(stage, session.createConsumer(stage.own("")), 2).get(0);
        stage.attempt("acknowledge", () -> first.acknowledge());
        stage.attempt("again", () -> first.acknowledge());
        stage.attempt("commit", () -> session.commit());
        stage.attempt("commit once more", () -> session.commit());
        session.close();
        receive(stage, stage.core().createConsumer(stage.own("")), 3);
    }
}
