import * as z from 'zod';
import type { InputOf } from '../base/input-of.ts';
import type { PromptMessage, ToolSpec } from '../events/index.ts';

const Condition = z.strictObject({
  /** Id of the agent. */
  agent: z.string().optional(),
  /** Substring of the trigger: everything that is new in this turn, or all results of the calls of the previous step. */
  contains: z.string().optional(),
  /** Regular expression (flags `su`) on the same text. */
  matches: z.string().optional(),
  /** Step of the turn, from 1. */
  step: z.int().positive().optional(),
  /** Number of this agent's answer within the prompt, from 1. */
  answer: z.int().positive().optional(),
  /** Number of the call within the step, from 1. For a first try that fails and a second that succeeds. */
  call: z.int().positive().optional(),
  /** Purpose of the request. A rule without one answers turns only. */
  purpose: z.enum(['turn', 'compaction']).optional(),
});

/** What a rule answers. */
export const ScriptReply = z.strictObject({
  /**
   * The answer. `{{last}}` stands for the last text of the trigger, `{{trigger}}` for the whole trigger, `{{n}}` for the
   * number of this agent's answer, `{{task}}` for the id of the last task that the trigger names. Default: none.
   */
  reply: z.string().default(''),
  /**
   * Calls of tools. Arguments given as a text are sent unchanged; others may use the same placeholders as the reply. Default:
   * none.
   */
  calls: z
    .array(
      z.strictObject({
        /** Name of the tool. */
        name: z.string(),
        /** Its arguments. Default: none. */
        args: z.unknown().optional(),
      }),
    )
    .default([]),
  /** Delay before the first chunk, ms. Default 0. */
  delayMs: z.int().nonnegative().default(0),
  /** Delay between chunks, ms. Default 0. */
  chunkDelayMs: z.int().nonnegative().default(0),
  /** Characters per chunk. Default 0: the reply is sent at once. */
  chunk: z.int().nonnegative().default(0),
  /** Fails with this error after some characters of the reply. Default: no failure. */
  fail: z
    .strictObject({
      /** Characters of the reply before the failure. Default 0. */
      after: z.int().nonnegative().default(0),
      /** Code of the failure, such as `provider_overloaded`. */
      code: z.string(),
      /** Its message. Default `scripted failure`. */
      message: z.string().default('scripted failure'),
    })
    .optional(),
});

/** What a scripted model is asked: the argument of a rule that is a function. */
export interface ScriptAsked {
  /** Id of the agent. */
  readonly agent: string;
  /** Conversation in which it is asked, or the thread of its task. */
  readonly conversation: string;
  /** Step of the turn, from 1. */
  readonly step: number;
  /** Number of the call within the step, from 1. */
  readonly call: number;
  /** Number of this agent's answer within the prompt, from 1. */
  readonly answer: number;
  /** What the request is for. */
  readonly purpose: 'turn' | 'compaction';
  /**
   * Everything that is new in this turn, or all results of the calls of the previous step: the texts, with an empty line
   * between them.
   */
  readonly trigger: string;
  /** The same texts one by one: the result of each task and of each call. */
  readonly texts: readonly string[];
  /** The last of these texts. */
  readonly last: string;
  /** Ids of tasks, questions and approvals that the trigger names, in order. */
  readonly tasks: readonly string[];
  /**
   * The last of these ids; else the last one that the prompt names; else, in the thread of a task, the id of that task. Empty:
   * none.
   */
  readonly task: string;
  /** The whole prompt. */
  readonly messages: readonly PromptMessage[];
  /** The tools that it may call. */
  readonly tools: readonly ToolSpec[];
}

/** What a function answers: a text, or an answer with calls, delays or a failure. Nothing: the next rule is tried. */
export type ScriptAnswer = string | InputOf<typeof ScriptReply> | null | undefined;

/**
 * A rule in code. It must depend on its argument alone, because a retry asks again. Its answer is sent without replacing
 * placeholders.
 */
export type ScriptFunction = (asked: ScriptAsked) => ScriptAnswer;

export const ScriptRule = z.strictObject({
  /** Conditions: it answers if all of them hold. Default: always. */
  when: Condition.default({}),
  ...ScriptReply.shape,
});
const Code = z
  .custom<ScriptFunction>((value) => typeof value === 'function', 'is a rule, or in code a function')
  // A JSON file cannot hold a function.
  .meta({ not: {} });

export const Script = z.strictObject({ rules: z.array(z.union([ScriptRule, Code])).min(1) });

/** One rule of a scripted model. `when` depends on the request alone, so a retry after a crash gets the same answer. */
export interface ScriptRuleInput extends InputOf<typeof ScriptRule> {}

/** The rules of a scripted model. */
export interface ScriptInput {
  /** At least one. The first that matches answers. In code a rule may be a function. */
  rules: readonly (ScriptRuleInput | ScriptFunction)[];
}
