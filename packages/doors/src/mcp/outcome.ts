import * as z from 'zod';
import type { Answer, Concluded } from '../troupe.ts';
import { type ExchangeId, exchangeId } from './exchange-id.ts';

/** Something that people have to do first. */
export const Waiting = z.object({
  kind: z.enum(['question', 'approval', 'delegation']),
  /** Id for the tools `answer`, `decide` and `cancel`. */
  id: z.string(),
  conversation: z.string(),
  /** Id of the agent that waits. */
  agent: z.string(),
  text: z.string().optional(),
  choices: z.array(z.string()).optional(),
  tool: z.string().optional(),
  args: z.string().optional(),
});
export type Waiting = z.infer<typeof Waiting>;

/** What a tool that waits for an answer gives. */
export const Outcome = z.object({
  status: z
    .enum(['answered', 'waiting', 'failed', 'working'])
    .describe('waiting: for people, as "waits" says. working: call "status" with the id'),
  id: z.string().describe('Id of this answer, for "status"'),
  conversation: z.string().describe('Id of the conversation, to go on with it'),
  text: z.string().describe('What the agents have said'),
  waits: z.array(Waiting),
  failures: z.array(z.object({ agent: z.string(), code: z.string(), message: z.string() })),
});
export type Outcome = z.infer<typeof Outcome>;

/** Longest text of an outcome, and longest arguments of a call in it, in characters. */
const MOST_CHARS = 100_000;
const MOST_ARGS = 10_000;

export function outcomeOf(id: ExchangeId, answer: Concluded, nameOf: (agent: string) => string): Outcome {
  const replies = answer.replies.filter(({ conversation }) => conversation === id.conversation);
  const isOne = new Set(replies.map(({ author }) => author.id)).size <= 1;
  const texts = replies.map(({ author, body }) =>
    isOne ? body.content : `**${nameOf(author.id)}:** ${body.content}`,
  );
  return {
    status: answer.outcome,
    ...head(id),
    text: within(texts.filter((text) => text !== '').join('\n\n'), id),
    waits: answer.waits.map(waitingOf),
    failures: answer.failures.map(({ agent, code, message }) => ({ agent, code, message })),
  };
}

/** Not done within the time that the client waits. `said`: the words so far. */
export function workingOn(id: ExchangeId, said: string): Outcome {
  return { status: 'working', ...head(id), text: within(said, id), waits: [], failures: [] };
}

function head(id: ExchangeId): Pick<Outcome, 'id' | 'conversation'> {
  return { id: exchangeId(id), conversation: id.conversation };
}

/** The newest words are kept. */
function within(text: string, { conversation }: ExchangeId): string {
  if (text.length <= MOST_CHARS) return text;
  return `[shortened; read troupe://conversations/${conversation} for all]\n…${text.slice(-MOST_CHARS).toWellFormed()}`;
}

function waitingOf({ conversation, task }: Answer['waits'][number]): Waiting {
  const { kind, id, owner, text, choices, tool, args } = task;
  return {
    kind,
    id,
    conversation,
    agent: owner,
    ...(text !== undefined && { text: text.slice(0, MOST_ARGS).toWellFormed() }),
    ...(choices && { choices }),
    ...(tool !== undefined && { tool }),
    ...(args !== undefined && { args: args.slice(0, MOST_ARGS).toWellFormed() }),
  };
}

/** The outcome in words, with what the client can do next. */
export function outcomeText(outcome: Outcome): string {
  const { status, id, conversation, text, waits, failures } = outcome;
  const lines = [
    ...(text === '' ? [] : [text]),
    ...waits.map(waitingText),
    ...failures.map(({ agent, code, message }) => `[@${agent} gave no answer (${code}): ${message}]`),
    ...(status === 'working'
      ? [
          `[The agents are still at work. Call the tool "status" with {"id":"${id}","wait":45} for the answer.]`,
        ]
      : []),
    `[conversation: ${conversation}]`,
  ];
  return lines.join('\n\n');
}

function waitingText(waiting: Waiting): string {
  const { kind, id, conversation, agent } = waiting;
  const at = `"conversation":"${conversation}"`;
  if (kind === 'question') {
    const offered = waiting.choices ? ` Choices: ${waiting.choices.join(' | ')}.` : '';
    return `[@${agent} asks: ${waiting.text ?? ''}${offered} Answer with the tool "answer": {${at},"question":"${id}","text":"…"}]`;
  }
  if (kind === 'approval') {
    return `[@${agent} waits for approval to call ${waiting.tool ?? ''} ${waiting.args ?? ''} Ask your user, then decide with the tool "decide": {${at},"request":"${id}","approved":true or false}]`;
  }
  return `[@${agent} waits for a task that nobody works on: ${waiting.text ?? ''} (${id})]`;
}
