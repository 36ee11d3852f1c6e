import type { AskedReply, Author, BusyPolicy, Mode } from '../events/index.ts';

/** A new message. Without `to`, the routing finds the recipients, else the default agent gets it, unless it is a reply. */
export interface NewMessage<Id extends string = string> {
  /** Idempotency key: a message with the same id and content is stored once. Default: a new ULID. */
  id?: string | undefined;
  /** Who speaks. */
  author: Author;
  /** Recipients: ids or pubkeys of agents. */
  to?: readonly Id[] | undefined;
  /** The words. May be empty if something is attached. */
  content: string;
  /** Images are shown to models that accept them. Texts up to 64 KiB are part of the prompt. Other files are named in it. */
  attachments?: readonly (NewAttachment | AttachmentByAddress)[] | undefined;
  /** Id of the message that it answers. */
  replyTo?: string | undefined;
  /** What happens if a recipient is in a turn. `reject` throws `agent_busy`. Default: `whileBusy` of the agent. */
  whileBusy?: BusyPolicy | undefined;
  /**
   * The author may not wake agents. The message is stored with its intended recipients; the command `dispatch` passes
   * it on to them. For gateways with messages of strangers.
   */
  untrusted?: true | undefined;
  /**
   * False: for people only. Stored as an event of kind `notice`: in no prompt, memory or summary of an agent, and it wakes
   * nobody. May not name recipients. Default: true.
   */
  includeInContext?: boolean | undefined;
  /** The door it came through, stored in the event's `context`: a short word of `a-z0-9-`. Default: `library`. */
  channel?: string | undefined;
  /**
   * A session of a program that an addressed agent is to continue: see `docs/reference/providers.md`. Only for
   * operators. The agent's next turn adopts the session if it fits; otherwise the log says why not.
   */
  session?:
    | {
        agent: string;
        provider: string;
        id: string;
        cwd?: string | undefined;
        refused?: 'author' | undefined;
      }
    | undefined;
  /**
   * The mode of the conversation from this message on, as the command `mode` sets it, in the same append: so a first message
   * is answered in it. Only trusted authors set one, and over HTTP the scope `operate`. Default: the mode stays.
   */
  mode?: Mode | undefined;
  /** The form of the answer, instead of the agent's own: its JSON is the reply's `data`. */
  reply?: AskedReply | undefined;
  /**
   * A value for the tools of the turns that follow from the message, as `context.forTools`. It stays in this process:
   * tools that run in another one, or after a restart, get null. Default: none.
   */
  forTools?: unknown;
  /** Stores `forTools` with the message, for tools in every process. It must then be JSON. Default false. */
  storeForTools?: boolean | undefined;
  /** The client's own ids of attachments. They are stored with the event and shown to no agent. */
  context?: { attachments?: readonly string[] | undefined } | undefined;
}

/**
 * An attachment that Troupe fetches, once, before it stores the message. Needs `fetch` in the definition. The address itself
 * is not stored.
 */
export interface AttachmentByAddress {
  /** Default: the last segment of the path. */
  name?: string | undefined;
  /** Default: the media type that the server states. */
  mediaType?: string | undefined;
  /** Where it is fetched from, http or https. */
  url: string;
}

/** The message of `ask` and `stream`, or its text. Default author: a user named `User`. */
export type Asked<Id extends string = string> =
  | string
  | (Omit<NewMessage<Id>, 'author' | 'includeInContext'> & { author?: Author | undefined });

/** An attachment with its bytes. */
export interface NewAttachment {
  /** Name of the file. Default: none. */
  name?: string | undefined;
  /** Media type, such as `image/png`. */
  mediaType: string;
  /** A string is base64. */
  data: Uint8Array | string;
}

/** An attachment of a stored message, with its bytes. */
export interface ReadAttachment {
  /** Name of the file, if it has one. */
  name?: string | undefined;
  /** Media type, such as `image/png`. */
  mediaType: string;
  /** The bytes. */
  data: Uint8Array;
}
