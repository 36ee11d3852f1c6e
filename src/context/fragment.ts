import * as z from 'zod';
import { AgentId, type ConversationId, type TenantId } from '../events/index.ts';

/**
 * Prompt fragments: text that an application adds to the prompts of its agents. A static fragment belongs to a frozen
 * layer and is evaluated when the runtime starts. A dynamic one is an item of the live block: evaluated when a turn is
 * pinned, recorded with that turn, and restated only when it changes.
 */
export interface AboutAgent {
  /** Id of the agent. */
  agent: AgentId;
  /** Its role among the others. */
  role: 'manager' | 'worker' | 'peer';
}

export interface AboutTurn {
  /** Id of the tenant. */
  tenant: TenantId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Time of the event that the turn answers, ms. */
  at: number;
}

/** Null omits the fragment. */
export type StaticText = (about: AboutAgent) => string | null;
export type DynamicText = (about: AboutTurn) => string | null | Promise<string | null>;

/** Text of a file, such as `AGENTS.md`. `name` stands above it, and names the file as the cause of a new epoch. */
export interface FileFragment {
  layer: 'rules' | 'persona';
  name: string;
  text: string;
}

/** The fragments of one agent, each list ordered by fragment name. */
export interface AgentFragments {
  rules: readonly string[];
  environment: readonly string[];
  live: readonly { name: string; text: DynamicText }[];
  /** In order. Default: none. */
  files?: readonly FileFragment[];
}

export const NO_FRAGMENTS: AgentFragments = { rules: [], environment: [], live: [] };

const common = {
  name: z
    .string()
    .regex(
      /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
      'a fragment name is 1 to 64 of A-Z a-z 0-9 _ - and starts with a letter',
    ),
  agents: z.array(AgentId).min(1).optional(),
};

/** A text that belongs to a frozen part of prompts, evaluated when the runtime starts. */
export interface StaticFragment {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`, beginning with a letter; unique. */
  name: string;
  /** Ids of the agents that receive it. Default: all. */
  agents?: readonly string[] | undefined;
  /** Evaluated once. */
  lifecycle: 'static';
  /** Where it stands: among the rules, or with what is said of the surroundings. */
  layer: 'rules' | 'environment';
  /** The text, or a function that gives it; null omits it. */
  text: string | StaticText;
}

/** A text that is evaluated for each turn, recorded with it, and restated only when it changes. */
export interface DynamicFragment {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`, beginning with a letter; unique. */
  name: string;
  /** Ids of the agents that receive it. Default: all. */
  agents?: readonly string[] | undefined;
  /** Evaluated for each turn. */
  lifecycle: 'dynamic';
  /** Gives the text; null omits it. */
  text: DynamicText;
}

/** A text that an application adds to prompts. */
export type FragmentInput = StaticFragment | DynamicFragment;

export const Fragment = z.discriminatedUnion('lifecycle', [
  z.strictObject({
    ...common,
    lifecycle: z.literal('static'),
    layer: z.enum(['rules', 'environment']),
    text: z.union([z.string(), functionOf<StaticText>()], 'must be a text or a function that gives one'),
  }),
  z.strictObject({
    ...common,
    lifecycle: z.literal('dynamic'),
    text: functionOf<DynamicText>('must be a function: what never changes is a static fragment'),
  }),
]);
export type Fragment = z.infer<typeof Fragment>;

function functionOf<F>(message?: string) {
  return z.custom<F>((value) => typeof value === 'function', message);
}
