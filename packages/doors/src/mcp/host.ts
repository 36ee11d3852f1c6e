import type { Answer, ChatChange, Clock, CommandInput, Event, Scope, Troupe } from '../troupe.ts';
import type { ExchangeId } from './exchange-id.ts';

/** What a client says. */
export interface Said {
  conversation: string;
  content: string;
  /** Id of the agent. Default: as the conversation's routing says. */
  agent?: string | undefined;
  /** The same id again is the same message. */
  id?: string | undefined;
}

/** One caller at a troupe, as the MCP server needs it. Methods throw as those of `Troupe`. */
export interface McpHost {
  /** The troupe, narrowed to what the caller may see and do. */
  troupe: Pick<Troupe, 'agents' | 'workflows' | 'events' | 'listConversations' | 'promptOf' | 'tasks'>;
  scopes: readonly Scope[];
  clock: Clock;
  /** Version of Troupe. */
  version: string;
  /** Aborted when the caller's rights or the process end. */
  ends?: AbortSignal | undefined;
  /** Id of a new conversation that the caller may write to. `key`: the same for the same one. */
  newConversation(key: string | null): string;
  /** What identifies a request among all of the caller's, also when it is repeated. Null: nothing does. */
  keyOf(request: string | number): string | null;
  /** Sends a message as the caller. */
  send(said: Said): Promise<ExchangeId>;
  /** Executes a command as the caller. */
  command(command: CommandInput): Promise<Event>;
  /**
   * Does what a call asks for, and waits for what comes of it, as one of the caller's streams. `ends` aborts with the
   * caller's rights.
   */
  call<T>(work: (ends: AbortSignal) => Promise<T>): Promise<T>;
  /** What has come and comes of a message or a command. */
  changes(id: ExchangeId, signal: AbortSignal): AsyncGenerator<ChatChange, Answer>;
  /** Does something that only reads, on the caller's account. */
  read<T>(work: () => Promise<T>): Promise<T>;
  /** Receives errors that the client is not told. */
  onError(error: unknown): void;
}

/** Nobody is told that a list has changed. */
export const CAPABILITIES = { tools: { listChanged: false }, resources: { listChanged: false } };
