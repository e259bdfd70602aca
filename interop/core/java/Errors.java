package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientConsumer;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSession.AddressQuery;
import org.apache.activemq.artemis.api.core.client.ClientSession.QueueQuery;

/** What is made by itself, what is refused and with which code. */
final class Errors implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("made by a producer", Errors::madeByProducer);
        cases.accept("made by a consumer", Errors::madeByConsumer);
        cases.accept("nothing is made here", Errors::nothingMade);
        cases.accept("queues", Errors::queues);
        cases.accept("queues of other kinds", Errors::kinds);
        cases.accept("addresses", Errors::addresses);
        cases.accept("queries", Errors::queries);
        cases.accept("a query by another address", Errors::otherAddress);
        cases.accept("shared queues", Errors::sharedQueues);
        cases.accept("temporary queues", Errors::temporaryQueues);
        cases.accept("consumers", Errors::consumers);
        cases.accept("messages to nowhere", Errors::nowhere);
        cases.accept("routing types", Errors::routingTypes);
        cases.accept("permissions", Errors::permissions);
        cases.accept("permissions by JMS", Errors::permissionsByJms);
        cases.accept("deleted addresses", Errors::deletedAddresses);
        cases.accept("expired by the client", Errors::expired);
    }

    private static SimpleString simple(String text) {
        return new SimpleString(text);
    }

    private static void sayQueue(Stage stage, String name) throws Exception {
        QueueQuery found = stage.core().queueQuery(simple(name));
        stage.say("exists %s durable %s temporary %s consumers %d messages %d filter %s", found.isExists(),
                found.isDurable(), found.isTemporary(), found.getConsumerCount(), found.getMessageCount(),
                found.getFilterString());
        stage.say("address %s name %s auto-created %s made by itself %s", same(stage, found.getAddress()),
                same(stage, found.getName()), found.isAutoCreated(), found.isAutoCreateQueues());
        stage.say("%s, most consumers %d, purge %s, exclusive %s, last value %s", found.getRoutingType(),
                found.getMaxConsumers(), found.isPurgeOnNoConsumers(), found.isExclusive(), found.isLastValue());
    }

    /** The name without the part that is the case's own. */
    private static String same(Stage stage, SimpleString name) {
        return name == null ? "none" : name.toString().replace(stage.own(""), "own");
    }

    private static void madeByProducer(Stage stage) throws Exception {
        Session session = stage.auto();
        session.createProducer(stage.queue());
        sayQueue(stage, stage.own(""));
        stage.send(stage.queue(), "m1");
        sayQueue(stage, stage.own(""));
        stage.attempt("send to a topic of that name", () -> stage.send(stage.topic(), "lost"));
        sayQueue(stage, stage.own(""));
    }

    private static void madeByConsumer(Stage stage) throws Exception {
        Session session = stage.auto();
        session.createConsumer(stage.queue(".q"));
        sayQueue(stage, stage.own(".q"));
        session.createConsumer(session.createTopic(stage.own(".t")));
        sayQueue(stage, stage.own(".t"));
        AddressQuery found = stage.core().addressQuery(simple(stage.own(".t")));
        stage.say("address %s, queues %d", found.isExists(), found.getQueueNames().size());
    }

    private static void nothingMade(Stage stage) throws Exception {
        Session session = stage.auto();
        stage.attempt("producer", () -> session.createProducer(stage.queue(".fixed")));
        stage.attempt("consumer", () -> session.createConsumer(stage.queue(".fixed")));
        stage.attempt("browser", () -> session.createBrowser(stage.queue(".fixed")).getEnumeration());
        stage.attempt("queue", () -> session.createQueue(stage.own(".fixed")));
        stage.attempt("topic", () -> session.createTopic(stage.own(".fixed")));
        stage.attempt("subscription", () -> session.createConsumer(session.createTopic(stage.own(".fixed"))));
        stage.attempt("send", () -> session.createProducer(null)
                .send(stage.queue(".fixed"), session.createTextMessage("m")));
        sayQueue(stage, stage.own(".fixed"));
    }

    private static void queues(Stage stage) throws Exception {
        ClientSession session = stage.core();
        String name = stage.own("");
        stage.attempt("create", () -> session.createQueue(name, RoutingType.ANYCAST, name, true));
        stage.attempt("create again", () -> session.createQueue(name, RoutingType.ANYCAST, name, true));
        stage.attempt("create again, not durable", () -> session.createQueue(name, RoutingType.ANYCAST, name, false));
        stage.attempt("of another address", () -> session.createQueue(stage.own(".other"), RoutingType.ANYCAST, name, true));
        stage.attempt("wrong filter", () ->
                session.createQueue(name, RoutingType.ANYCAST, stage.own(".filtered"), "a =", true));
        stage.attempt("no name", () -> session.createQueue(name, RoutingType.ANYCAST, "", true));
        ClientConsumer consumer = session.createConsumer(name);
        stage.attempt("delete with a consumer", () -> session.deleteQueue(name));
        consumer.close();
        stage.attempt("delete", () -> session.deleteQueue(name));
        stage.attempt("delete again", () -> session.deleteQueue(name));
        stage.attempt("consume", () -> session.createConsumer(name));
        stage.attempt("no address", () ->
                session.createQueue(stage.own(".fixed"), RoutingType.ANYCAST, stage.own(".fixed"), true));
        stage.attempt("still open", () -> session.createQueue(name, RoutingType.ANYCAST, name, true));
    }

    private static void kinds(Stage stage) throws Exception {
        ClientSession session = stage.core();
        session.createAddress(simple(stage.own("")), RoutingType.MULTICAST, false);
        stage.attempt("anycast queue of a multicast address", () ->
                session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(".q"), true));
        stage.attempt("multicast queue", () ->
                session.createQueue(stage.own(""), RoutingType.MULTICAST, stage.own(".m"), "a = 1", true));
        sayQueue(stage, stage.own(".m"));
        stage.attempt("multicast queue, not durable", () ->
                session.createQueue(stage.own(""), RoutingType.MULTICAST, stage.own(".n"), false));
        sayQueue(stage, stage.own(".n"));
    }

    private static void addresses(Stage stage) throws Exception {
        ClientSession session = stage.core();
        SimpleString name = simple(stage.own(""));
        stage.attempt("create", () -> session.createAddress(name, RoutingType.MULTICAST, false));
        stage.attempt("create again", () -> session.createAddress(name, RoutingType.MULTICAST, false));
        stage.attempt("create where nothing is made by itself", () ->
                session.createAddress(simple(stage.own(".fixed")), RoutingType.ANYCAST, false));
        for (SimpleString one : new SimpleString[] {name, simple(stage.own(".unknown")), simple(stage.own(".fixed"))}) {
            AddressQuery found = session.addressQuery(one);
            stage.say("exists %s queues %s made by itself %s %s", found.isExists(), found.getQueueNames().size(),
                    found.isAutoCreateQueues(), found.isAutoCreateAddresses());
        }
    }

    private static void queries(Stage stage) throws Exception {
        sayQueue(stage, stage.own(".unknown"));
        stage.auto().createProducer(stage.queue("?exclusive=true&max-consumers=3&purge-on-no-consumers=true"));
        sayQueue(stage, stage.own(""));
        sayQueue(stage, stage.own("") + "::" + stage.own(""));
        stage.send(stage.queue(".full"), 5);
        sayQueue(stage, stage.own(".full"));
    }

    private static void otherAddress(Stage stage) throws Exception {
        stage.auto().createConsumer(stage.queue());
        stage.say("exists %s", stage.core().queueQuery(simple("unknown::" + stage.own(""))).isExists());
    }

    private static void sharedQueues(Stage stage) throws Exception {
        ClientSession session = stage.core();
        SimpleString address = simple(stage.own(""));
        SimpleString queue = simple(stage.own(".q"));
        stage.attempt("create", () -> session.createSharedQueue(address, RoutingType.MULTICAST, queue, true));
        stage.attempt("create again", () -> session.createSharedQueue(address, RoutingType.MULTICAST, queue, true));
        stage.attempt("with a filter", () ->
                session.createSharedQueue(address, RoutingType.MULTICAST, queue, simple("a = 1"), true));
        stage.attempt("of another address", () ->
                session.createSharedQueue(simple(stage.own(".other")), RoutingType.MULTICAST, queue, true));
        sayQueue(stage, stage.own(".q"));
    }

    private static void temporaryQueues(Stage stage) throws Exception {
        ClientSession session = stage.core();
        stage.attempt("create", () -> session.createTemporaryQueue(stage.own(""), RoutingType.MULTICAST, stage.own(".t")));
        sayQueue(stage, stage.own(".t"));
        stage.attempt("create again", () ->
                session.createTemporaryQueue(stage.own(""), RoutingType.MULTICAST, stage.own(".t")));
        stage.attempt("delete", () -> session.deleteQueue(stage.own(".t")));
    }

    private static void consumers(Stage stage) throws Exception {
        ClientSession session = stage.core();
        stage.attempt("of an unknown queue", () -> session.createConsumer(stage.own(".unknown")));
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        stage.attempt("with a wrong filter", () -> session.createConsumer(stage.own(""), "a ="));
        ClientConsumer consumer = session.createConsumer(stage.own(""));
        stage.attempt("close", consumer::close);
        stage.attempt("close again", consumer::close);
        stage.attempt("receive", () -> consumer.receive(10));
        stage.attempt("browser of an unknown queue", () -> session.createConsumer(stage.own(".unknown"), true));
        session.close();
        stage.attempt("of a closed session", () -> session.createConsumer(stage.own("")));
    }

    private static void nowhere(Stage stage) throws Exception {
        ClientSession session = stage.core();
        stage.attempt("untyped", () -> session.createProducer(stage.own(".unknown")).send(session.createMessage(true)));
        stage.attempt("where nothing is made", () ->
                session.createProducer(stage.own(".fixed")).send(session.createMessage(true)));
        ClientMessage typed = session.createMessage(true);
        typed.putByteProperty("_AMQ_ROUTING_TYPE", RoutingType.ANYCAST.getType());
        stage.attempt("typed, where nothing is made", () -> session.createProducer(stage.own(".fixed")).send(typed));
        stage.attempt("typed", () -> session.createProducer(stage.own(".typed")).send(typed));
        sayQueue(stage, stage.own(".typed"));
        sayQueue(stage, stage.own(".unknown"));
        session.createAddress(simple(stage.own(".empty")), RoutingType.ANYCAST, false);
        stage.attempt("to an address without queues", () ->
                session.createProducer(stage.own(".empty")).send(session.createMessage(true)));
        stage.attempt("without an address", () -> session.createProducer().send((String) null, session.createMessage(true)));
    }

    private static void routingTypes(Stage stage) throws Exception {
        ClientSession session = stage.core();
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(".1"), true);
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(".2"), true);
        ClientMessage typed = session.createMessage(true);
        typed.putByteProperty("_AMQ_ROUTING_TYPE", RoutingType.MULTICAST.getType());
        stage.attempt("multicast to anycast queues", () -> session.createProducer(stage.own("")).send(typed));
        stage.attempt("untyped", () -> session.createProducer(stage.own("")).send(session.createMessage(true)));
        long first = session.queueQuery(simple(stage.own(".1"))).getMessageCount();
        long second = session.queueQuery(simple(stage.own(".2"))).getMessageCount();
        stage.say("%d in all", first + second);
    }

    private static void permissions(Stage stage) throws Exception {
        ClientSession session = stage.core();
        String name = stage.own(".closed");
        stage.attempt("address", () -> session.createAddress(simple(name), RoutingType.ANYCAST, false));
        stage.attempt("durable queue", () -> session.createQueue(name, RoutingType.ANYCAST, name, true));
        stage.attempt("queue", () -> session.createQueue(name, RoutingType.ANYCAST, name, false));
        stage.attempt("send", () -> session.createProducer(name).send(session.createMessage(true)));
        stage.attempt("query", () -> session.queueQuery(simple(name)).isExists());
        String given = "interop.given.closed";
        stage.attempt("consume", () -> session.createConsumer(given));
        stage.attempt("browse", () -> session.createConsumer(given, true));
        stage.attempt("send", () -> session.createProducer(given).send(session.createMessage(true)));
        stage.attempt("delete", () -> session.deleteQueue(given));
        ClientSession transacted = stage.core(false, false);
        stage.attempt("send in a transaction", () ->
                transacted.createProducer(given).send(transacted.createMessage(true)));
        stage.attempt("commit", () -> transacted.commit());
        stage.attempt("commit then", () -> transacted.commit());
    }

    private static void permissionsByJms(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        var queue = session.createQueue("interop.given.closed");
        stage.attempt("consumer", () -> session.createConsumer(queue));
        stage.attempt("browser", () -> session.createBrowser(queue).getEnumeration());
        stage.attempt("send", () -> session.createProducer(queue).send(session.createTextMessage("m")));
        stage.attempt("another queue", () -> session.createConsumer(stage.queue(".closed")));
        stage.attempt("topic", () -> session.createConsumer(session.createTopic(stage.own(".closed"))));
        stage.attempt("the session goes on", () -> session.createConsumer(stage.queue()));
    }

    private static void deletedAddresses(Stage stage) throws Exception {
        ClientSession session = stage.core();
        session.createQueue(stage.own(""), RoutingType.ANYCAST, stage.own(""), true);
        var producer = session.createProducer(stage.own(""));
        producer.send(session.createMessage(true));
        session.deleteQueue(stage.own(""));
        stage.attempt("send", () -> producer.send(session.createMessage(true)));
        sayQueue(stage, stage.own(""));
    }

    private static void expired(Stage stage) throws Exception {
        Session session = stage.auto();
        var consumer = stage.auto().createConsumer(stage.queue());
        var producer = session.createProducer(stage.queue());
        producer.setTimeToLive(150);
        producer.send(session.createTextMessage("old"));
        producer.setTimeToLive(0);
        Thread.sleep(200);
        producer.send(session.createTextMessage("new"));
        stage.receive("got", consumer, 1);
        stage.rest("and", consumer);
    }
}
