import type { ConversationId } from '../events/index.ts';
import type { CommandInput, Conversation, Troupe } from './troupe.ts';

/** A troupe without `conversation`, which is made of the other methods. */
type Methods = Omit<Troupe, 'conversation'>;

/** The methods of `troupe` for one conversation. The handle has no more rights than `troupe`. */
export function conversationHandle(troupe: Methods, id: ConversationId): Conversation {
  return {
    id,
    send: (message) => troupe.send(id, message),
    ask: (message, options) => troupe.ask(id, message, options),
    stream: (message, options) => troupe.stream(id, message, options),
    rejoin: (seq, options) => troupe.rejoin(id, seq, options),
    follow: (options) => troupe.follow(id, options),
    state: () => troupe.state(id),
    events: (range) => troupe.events(id, range),
    attachment: (seq, index) => troupe.attachment(id, seq, index),
    verify: (range) => troupe.verify(id, range),
    actors: () => troupe.actors(id),
    tasks: (options) => troupe.tasks(id, options),
    prompt: (agent) => troupe.prompt(id, agent),
    cost: () => troupe.cost(id),
    cacheCost: (agent, options) => troupe.cacheCost(id, agent, options),
    export: (options) => troupe.export(id, options),
    delete: (options) => troupe.delete(id, options),
    command: (command, by) => troupe.command(commandIn(id, command), by),
    watch: (watcher) => troupe.watch(watcher, { conversation: id }),
    idle: () => troupe.idle({ conversation: id }),
  };
}

/** Adds the conversation to a command. A turn's id contains it already. An invalid command is left for the troupe to refuse. */
function commandIn(
  conversation: ConversationId,
  command: Parameters<Conversation['command']>[0],
): CommandInput {
  const { turn } = Object(command) as { turn?: unknown };
  const isWhole = typeof command !== 'object' || command === null || turn !== undefined;
  return (isWhole ? command : { ...command, conversation }) as CommandInput;
}
