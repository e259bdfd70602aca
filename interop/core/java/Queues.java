package interop;

import java.util.concurrent.FutureTask;
import java.util.function.BiConsumer;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientRequestor;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.management.ManagementHelper;

/** Queues of all kinds, made by what stands in their names, and a queue that goes away under its consumer. */
final class Queues implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("exclusive", stage -> exclusive(stage, made(stage, "?exclusive=true")));
        cases.accept("exclusive by its address", stage -> exclusive(stage, stage.queue(".exclusive")));
        cases.accept("groups", Queues::groups);
        cases.accept("groups that end", Queues::groupsEnd);
        cases.accept("groups of a client", Queues::autoGroup);
        cases.accept("last value", Queues::lastValue);
        cases.accept("last value, one in delivery", Queues::lastValueInDelivery);
        cases.accept("ring", Queues::ring);
        cases.accept("ring, one in delivery", Queues::ringInDelivery);
        cases.accept("most consumers", Queues::mostConsumers);
        cases.accept("purged without consumers", Queues::purged);
        cases.accept("not destructive", Queues::notDestructive);
        cases.accept("dispatch starts with two", Queues::startsWithTwo);
        cases.accept("consumer priority", Queues::priority);
        cases.accept("filtered", Queues::filtered);
        cases.accept("several queues of an address", Queues::several);
        cases.accept("destroyed under a consumer", Queues::destroyed);
        cases.accept("destroyed under a consumer that waits", Queues::destroyedWaiting);
        cases.accept("destroyed, a consumer by the core API", Queues::destroyedCore);
    }

    /** As a consumer without a window, which takes what it asks for and no more. */
    private static MessageConsumer asking(Stage stage, Queue queue) throws JMSException {
        return stage.auto("consumerWindowSize=0").createConsumer(queue);
    }

    /** A queue with parameters. The client obeys them where a producer makes the queue, and not where a consumer does. */
    private static Queue made(Stage stage, String parameters) throws JMSException {
        stage.auto().createProducer(stage.queue(parameters)).close();
        return stage.queue();
    }

    private static void exclusive(Stage stage, Queue queue) throws Exception {
        MessageConsumer first = stage.auto().createConsumer(queue);
        MessageConsumer second = stage.auto().createConsumer(queue);
        stage.send(queue, 4);
        stage.rest("second", second);
        stage.receive("first", first, 2);
        first.close();
        stage.rest("second then", second);
    }

    private static void sendOf(Stage stage, String property, String... values) throws JMSException {
        sendTo(stage, stage.queue(), property, values);
    }

    private static void sendTo(Stage stage, Queue queue, String property, String... values) throws JMSException {
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(queue);
        for (int index = 0; index < values.length; index++) {
            Message message = session.createTextMessage("m" + (index + 1) + " of " + values[index]);
            message.setStringProperty(property, values[index]);
            producer.send(message);
        }
    }

    private static void groups(Stage stage) throws Exception {
        MessageConsumer first = asking(stage, stage.queue());
        MessageConsumer second = asking(stage, stage.queue());
        sendOf(stage, "JMSXGroupID", "a", "b", "a", "b", "a");
        stage.receive("first", first, 1);
        stage.receive("second", second, 1);
        stage.rest("first", first);
        stage.rest("second", second);
        first.close();
        sendOf(stage, "JMSXGroupID", "a", "b");
        stage.rest("second, when the first is gone", second);
    }

    private static void groupsEnd(Stage stage) throws Exception {
        MessageConsumer first = asking(stage, stage.queue());
        MessageConsumer second = asking(stage, stage.queue());
        sendOf(stage, "JMSXGroupID", "a", "a");
        stage.receive("first", first, 1);
        stage.rest("second", second);
        stage.receive("first", first, 1);
        Session session = stage.auto();
        Message last = session.createTextMessage("the last");
        last.setStringProperty("JMSXGroupID", "a");
        last.setIntProperty("JMSXGroupSeq", -1);
        session.createProducer(stage.queue()).send(last);
        stage.receive("first", first, 1);
        sendOf(stage, "JMSXGroupID", "a");
        stage.rest("second", second);
    }

    private static void autoGroup(Stage stage) throws Exception {
        Session session = stage.auto("autoGroup=true");
        MessageProducer producer = session.createProducer(stage.queue());
        MessageConsumer first = asking(stage, stage.queue());
        MessageConsumer second = asking(stage, stage.queue());
        for (int number = 1; number <= 3; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        stage.receive("first", first, 1);
        stage.rest("second", second);
        stage.rest("first", first);
        Session named = stage.auto("groupID=mine");
        named.createProducer(stage.queue(".named")).send(named.createTextMessage("m"));
        Message got = asking(stage, stage.queue(".named")).receive(Scene.LONG_MS);
        stage.say("group %s", got.getStringProperty("JMSXGroupID"));
    }

    private static void lastValue(Stage stage) throws Exception {
        Queue queue = made(stage, "?last-value-key=symbol");
        sendTo(stage, queue, "symbol", "a", "b", "a", "c", "b");
        stage.browse("browsed", stage.queue());
        stage.drain("left", stage.queue());
        made(stage, ".default?last-value=true");
        sendTo(stage, stage.queue(".default"), "_AMQ_LVQ_NAME", "a", "b", "a");
        stage.drain("by the usual property", stage.queue(".default"));
    }

    private static void lastValueInDelivery(Stage stage) throws Exception {
        Queue queue = made(stage, "?last-value-key=symbol");
        Session session = stage.session(Session.SESSION_TRANSACTED, "consumerWindowSize=0");
        MessageConsumer consumer = session.createConsumer(queue);
        sendTo(stage, queue, "symbol", "a", "b");
        stage.receive("received", consumer, 1);
        sendTo(stage, queue, "symbol", "a", "a");
        session.rollback();
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void ring(Stage stage) throws Exception {
        Queue queue = made(stage, "?ring-size=3");
        stage.send(queue, 5);
        stage.browse("browsed", stage.queue());
        stage.send(queue, "m6");
        stage.drain("left", stage.queue());
    }

    private static void ringInDelivery(Stage stage) throws Exception {
        Queue queue = made(stage, "?ring-size=2");
        Session session = stage.session(Session.SESSION_TRANSACTED, "consumerWindowSize=0");
        MessageConsumer consumer = session.createConsumer(queue);
        stage.send(queue, 2);
        stage.receive("received", consumer, 1);
        stage.send(queue, 3, 5);
        session.rollback();
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void mostConsumers(Stage stage) throws Exception {
        Queue queue = made(stage, "?max-consumers=2");
        MessageConsumer first = stage.auto().createConsumer(queue);
        stage.attempt("second", () -> stage.auto().createConsumer(queue));
        stage.attempt("third", () -> stage.auto().createConsumer(queue));
        first.close();
        stage.attempt("when one has gone", () -> stage.auto().createConsumer(queue));
    }

    private static void purged(Stage stage) throws Exception {
        Queue queue = made(stage, "?purge-on-no-consumers=true");
        MessageConsumer first = stage.auto("consumerWindowSize=0").createConsumer(queue);
        MessageConsumer second = stage.auto("consumerWindowSize=0").createConsumer(queue);
        stage.send(queue, 3);
        first.close();
        stage.receive("second", second, 1);
        second.close();
        stage.drain("left", stage.queue());
    }

    private static void notDestructive(Stage stage) throws Exception {
        Queue queue = made(stage, "?non-destructive=true");
        MessageConsumer first = stage.auto().createConsumer(queue);
        stage.send(queue, 3);
        stage.receive("first", first, 3);
        MessageConsumer second = stage.auto().createConsumer(queue);
        stage.receive("second", second, 3);
        stage.rest("first", first);
    }

    private static void startsWithTwo(Stage stage) throws Exception {
        Queue queue = made(stage, "?consumers-before-dispatch=2&delay-before-dispatch=-1");
        MessageConsumer first = asking(stage, queue);
        stage.send(queue, 2);
        stage.rest("alone", first);
        MessageConsumer second = asking(stage, queue);
        stage.receive("first", first, 1);
        stage.receive("second", second, 1);
    }

    private static void priority(Stage stage) throws Exception {
        MessageConsumer low = stage.auto().createConsumer(stage.queue("?consumer-priority=1"));
        MessageConsumer high = stage.auto().createConsumer(stage.queue("?consumer-priority=5"));
        stage.send(stage.queue(), 3);
        stage.rest("low", low);
        stage.rest("high", high);
        high.close();
        stage.send(stage.queue(), 4, 5);
        stage.rest("low, alone", low);
    }

    private static void filtered(Stage stage) throws Exception {
        ClientSession session = stage.core();
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""),
                "kind = 'a'", true);
        sendOf(stage, "kind", "a", "b", "a");
        stage.drain("left", stage.queue());
    }

    private static void several(Stage stage) throws Exception {
        ClientSession session = stage.core();
        for (String suffix : new String[] {".1", ".2"}) {
            session.createQueue(stage.own(""), RoutingType.ANYCAST,
                    stage.own(suffix), true);
        }
        for (int number = 0; number < 4; number++) {
            session.createProducer(stage.own("")).send(session.createMessage(true));
        }
        long first = session.queueQuery(new SimpleString(stage.own(".1"))).getMessageCount();
        long second = session.queueQuery(new SimpleString(stage.own(".2"))).getMessageCount();
        stage.say("%d and %d", first, second);
        Queue one = stage.auto().createQueue(stage.own("") + "::" + stage.own(".2"));
        stage.send(one, "to the second");
        stage.say("then %d", session.queueQuery(new SimpleString(stage.own(".2"))).getMessageCount());
    }

    /** By a management message. */
    private static void destroy(Stage stage) throws Exception {
        ClientSession session = stage.core();
        ClientRequestor requestor = new ClientRequestor(session, "activemq.management");
        ClientMessage question = session.createMessage(false);
        ManagementHelper.putOperationInvocation(question, "broker", "destroyQueue", stage.own(""), true);
        ClientMessage answer = requestor.request(question, Scene.LONG_MS);
        stage.say("destroyed: %s", ManagementHelper.hasOperationSucceeded(answer));
        stage.say("there: %s", session.queueQuery(
                new SimpleString(stage.own(""))).isExists());
    }

    private static void destroyed(Stage stage) throws Exception {
        Session session = stage.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.send(stage.queue(), 3);
        Message got = stage.receive("received", consumer, 1).get(0);
        destroy(stage);
        stage.attempt("acknowledge", got::acknowledge);
        stage.attempt("receive", () -> consumer.receiveNoWait());
        stage.attempt("close", consumer::close);
        stage.send(stage.queue(), "new");
        stage.receive("the session goes on", session.createConsumer(stage.queue()), 1);
    }

    private static void destroyedWaiting(Stage stage) throws Exception {
        MessageConsumer consumer = stage.auto().createConsumer(stage.queue());
        FutureTask<Message> receiving = new FutureTask<>(() -> consumer.receive(Scene.LONG_MS));
        Thread waiting = new Thread(receiving);
        waiting.start();
        Scene.until(() -> waiting.getState() == Thread.State.TIMED_WAITING);
        destroy(stage);
        stage.attempt("receive", () -> stage.say("got %s", Stage.show(receiving.get())));
    }

    private static void destroyedCore(Stage stage) throws Exception {
        ClientSession session = stage.core();
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        var consumer = session.createConsumer(stage.own(""));
        destroy(stage);
        Scene.until(consumer::isClosed);
        stage.attempt("receive", () -> consumer.receiveImmediate());
        stage.say("session closed: %s", session.isClosed());
    }
}
