import type { AgentInput } from './config/agent-input.ts';
import type { AgentId } from '../events/index.ts';
import type { DataOf, DataSchema } from '../tools/schema.ts';
import type { Answer, Asked, AskOptions, Conversation, NewMessage, Note, Troupe } from './troupe.ts';

/** A troupe whose agents the compiler knows: `to` takes their ids, and the data of replies have the types of their schemas. */
export interface TypedTroupe<Id extends string, R extends Record<Id, unknown>> extends Omit<
  Troupe,
  'send' | 'ask' | 'stream' | 'conversation'
> {
  /** Stores a message and wakes the agents that it addresses; does not wait for their turns. As `Troupe.send`. */
  send(conversation: string, message: NewMessage<Id> | string): ReturnType<Troupe['send']>;
  /**
   * Sends a message and waits for what comes of it. `data` has the type of the `reply` schema of whom `to` names; of any
   * agent, if that agent may hand over or `to` is left out. As `Troupe.ask`.
   */
  ask<To extends Id = Id>(
    conversation: string,
    message: Asked<To>,
    options?: AskOptions,
  ): Promise<Answer<R[To]>>;
  /** As `ask`, but yields what happens meanwhile; the answer is the return value of the generator. */
  stream<To extends Id = Id>(
    conversation: string,
    message: Asked<To>,
    options?: AskOptions,
  ): AsyncGenerator<Note, Answer<R[To]>>;
  /** The methods for one conversation, without its id. As `Troupe.conversation`. */
  conversation(id: string): TypedConversation<Id, R>;
}

/** A conversation of a troupe whose agents the compiler knows. */
export interface TypedConversation<Id extends string, R extends Record<Id, unknown>> extends Omit<
  Conversation,
  'send' | 'ask' | 'stream'
> {
  /** As `send` of the troupe. */
  send(message: NewMessage<Id> | string): ReturnType<Troupe['send']>;
  /** As `ask` of the troupe. */
  ask<To extends Id = Id>(message: Asked<To>, options?: AskOptions): Promise<Answer<R[To]>>;
  /** As `stream` of the troupe. */
  stream<To extends Id = Id>(message: Asked<To>, options?: AskOptions): AsyncGenerator<Note, Answer<R[To]>>;
}

/** The troupe of a definition. Agents from a file or a list that is built at run time have ids of the type string; so have those of templates. */
export type TroupeOf<Agent extends AgentInput, Template> = [Agent] extends [never]
  ? Troupe
  : AgentId extends Agent['id']
    ? Troupe
    : [Template] extends [never]
      ? TypedTroupe<Agent['id'], RepliesOf<Agent>>
      : Troupe;

/** Data of the replies by id of the agent. */
type RepliesOf<Agent extends AgentInput> = {
  readonly [Id in Agent['id']]: DataOfAgent<
    MayHandOver<Extract<Agent, { id: Id }>> extends true ? Agent : Extract<Agent, { id: Id }>
  >;
};

type MayHandOver<A> = A extends { tools: readonly (infer Name)[] }
  ? 'handoff' extends Name
    ? true
    : false
  : false;

type DataOfAgent<A> = A extends { reply: infer Schema extends DataSchema } ? DataOf<Schema> : undefined;
