import * as z from 'zod';
import {
  Join,
  AgentId,
  HandoffDraft,
  HandoffSummary,
  MAX_MESSAGE_ATTACHMENTS,
  TodoItem,
} from '../../events/index.ts';
import { defineTool, type Tool } from '../tool.ts';

const WAITING = {
  wait: z.boolean().default(true).describe('Ends your turn. The result wakes you either way.'),
  until: Join.default('all').describe(
    'For several tasks at once: what wakes you. all: every end. first: the first end. any: the first result. The rest are cancelled.',
  ),
  deadlineMinutes: z.number().positive().max(525_600).optional().describe('Cancels it after this long.'),
};

function waitingOf({ wait, until, deadlineMinutes }: z.output<z.ZodObject<typeof WAITING>>) {
  return {
    wait,
    join: until,
    ...(deadlineMinutes !== undefined && { deadlineMs: deadlineMinutes * 60_000 }),
  };
}

const names = z.array(z.string().min(1)).max(MAX_MESSAGE_ATTACHMENTS).optional();
const attachments = names.describe(
  'Names of attachments to pass on. Default: those of the message you work on; []: none.',
);

/** The engine decides whether the agent exists and may get the task. */
export const delegateTool = defineTool({
  name: 'delegate',
  description:
    'Gives a task to another agent. It sees the task with its attachments, not this conversation. Its result wakes you. Several calls at once run side by side.',
  schema: z.object({
    to: z.string().min(1).describe('Id of the agent.'),
    task: z.string().min(1).describe('What to do, with everything needed for it.'),
    attachments,
    force: z.boolean().default(false).describe('Even if that agent waits for your work.'),
    ...WAITING,
  }),
  idempotent: true,
  run: ({ to, task, force, attachments: names, ...waiting }) => ({
    text: '',
    request: {
      kind: 'delegate',
      how: 'delegate',
      to,
      task,
      force,
      ...(names && { attachments: names }),
      ...waitingOf(waiting),
    },
  }),
});

/** Recipient that stands for all people of the conversation. */
const PEOPLE = 'people';

export const askTool = defineTool({
  name: 'ask',
  description:
    'Asks another agent, or the people here, a question. The answer wakes you. An agent sees the question with its attachments, not this conversation.',
  schema: z.object({
    to: z.string().min(1).default(PEOPLE).describe(`Id of an agent, or "${PEOPLE}".`),
    question: z.string().min(1),
    by: z.array(z.string().min(1)).max(50).default([]).describe('Ids of people who may answer. []: all.'),
    choices: z.array(z.string().min(1)).min(2).max(20).optional().describe('Answers to choose from.'),
    attachments,
    ...WAITING,
  }),
  idempotent: true,
  run({ to, question, by, choices, attachments: names, ...waiting }) {
    const rest = waitingOf(waiting);
    if (to.trim().replace(/^@/, '') !== PEOPLE) {
      return {
        text: '',
        request: {
          kind: 'delegate',
          how: 'ask',
          to,
          task: question,
          force: false,
          ...(names && { attachments: names }),
          ...rest,
        },
      };
    }
    return {
      text: '',
      request: { kind: 'question', text: question, by, ...(choices && { choices }), ...rest },
    };
  },
});

export const followUpTool = defineTool({
  name: 'follow_up',
  description:
    'Adds to a task that you gave: the agent goes on from its earlier work. The new result wakes you.',
  schema: z.object({
    task: z.string().min(1).describe('Id of the task, or its beginning.'),
    text: z.string().min(1),
    attachments: names.describe('Names of more attachments to pass on. Default: none.'),
    ...WAITING,
  }),
  idempotent: true,
  run: ({ task, text, attachments: more, ...waiting }) => ({
    text: '',
    request: { kind: 'followUp', task, text, ...(more && { attachments: more }), ...waitingOf(waiting) },
  }),
});

export const cancelTaskTool = defineTool({
  name: 'cancel_task',
  description: 'Cancels a task that you gave, with everything given to others for it.',
  schema: z.object({
    task: z.string().min(1).describe('Id of the task, or its beginning.'),
    reason: z.string().default(''),
  }),
  idempotent: true,
  run: ({ task, reason }) => ({ text: '', request: { kind: 'cancelTask', task, reason } }),
});

export const remindTool = defineTool({
  name: 'remind',
  description: 'Sends you a note later, and wakes you with it.',
  schema: z
    .object({
      text: z.string().min(1).describe('The note.'),
      at: z.iso.datetime({ offset: true }).optional().describe('When, as 2026-11-21T22:05:00Z.'),
      inMinutes: z.number().positive().max(525_600).optional().describe('Instead of `at`.'),
    })
    .refine(({ at, inMinutes }) => (at === undefined) !== (inMinutes === undefined), {
      message: 'say either when (at) or in how many minutes (inMinutes)',
    }),
  idempotent: true,
  run: ({ text, at, inMinutes = 0 }) => ({
    text: '',
    request:
      at === undefined
        ? { kind: 'remind', text, inMs: Math.ceil(inMinutes * 60_000) }
        : { kind: 'remind', text, at: Date.parse(at) },
  }),
});

export const todoTool = defineTool({
  name: 'todo',
  description:
    'Replaces your to-do list: give all items each time. Your turn does not end while an item is pending or active, unless you wait for others or set `later`.',
  schema: z.object({
    items: z.array(TodoItem).max(100),
    later: z.boolean().default(false).describe('Work on it another time.'),
  }),
  idempotent: true,
  run({ items, later }) {
    const left = items.filter(({ status }) => status === 'pending' || status === 'active').length;
    return {
      text: `${items.length} items, ${left} to be done`,
      request: { kind: 'todos', items, later },
    };
  },
});

/** For workflow steps that the agent completes itself. */
export const completeStepTool = defineTool({
  name: 'complete_step',
  description:
    'Completes your step of the workflow. The next one begins when your turn ends and you wait for nothing.',
  schema: z.object({}),
  idempotent: true,
  run: () => 'noted: the step is complete when your turn ends',
});

export const noResponseTool = defineTool({
  name: 'no_response',
  description: 'Ends your turn without an answer, where none is needed.',
  schema: z.object({ reason: z.string().default('') }),
  idempotent: true,
  run: ({ reason }) => ({ text: 'nothing is said', request: { kind: 'noResponse', reason } }),
});

const HandoffArguments = z.object({
  to: z.string().min(1).describe('Id of the agent that takes over.'),
  goal: HandoffSummary.shape.goal.describe('What the people want.'),
  done: HandoffSummary.shape.done.describe('What is done.'),
  state: HandoffSummary.shape.state.describe('Decisions, files, numbers.'),
  next: HandoffSummary.shape.next.describe('What to do first.'),
  openQuestions: HandoffSummary.shape.openQuestions.describe('What is undecided.'),
  artifacts: HandoffSummary.shape.artifacts.describe('Ids of artifacts that matter.'),
  why: HandoffSummary.shape.why.describe('Why this agent.'),
});

const GoalLeftOut = HandoffArguments.extend({
  goal: HandoffDraft.shape.goal.describe('What the people want. Default: taken from the conversation.'),
});

/**
 * How the missing goal of a summary is filled in. `agent`: not at all, the agent must name the goal. `extract`: the goal is
 * taken from the log. `summarise`: a model writes it.
 */
export type HandoffPolicy = 'agent' | 'extract' | 'summarise';

/** Hands the conversation to another agent. The engine decides whether that agent exists and may receive it. */
export function handoffTool(policy: HandoffPolicy): Tool {
  return defineTool({
    name: 'handoff',
    description: 'Hands this conversation over to another agent, with a summary. Your turn ends.',
    schema: policy === 'agent' ? HandoffArguments : GoalLeftOut,
    idempotent: true,
    run({ to, ...summary }) {
      const agent = AgentId.safeParse(to.trim().replace(/^@/, ''));
      if (!agent.success) throw new Error(`${JSON.stringify(to)} is not an agent id`);
      const request = { kind: 'handoff' as const, to: agent.data, summary };
      return {
        text: `Handed over to ${agent.data}.`,
        request: policy === 'agent' ? request : { ...request, fill: policy },
      };
    },
  });
}

/** Most bytes of one read; longer ranges take several reads. */
const MAX_BYTES = 12_288;
const DEFAULT_LINES = 200;

const ArtifactArguments = z.object({
  id: z.string().min(1).describe('As in @artifact/<id>.'),
  unit: z.enum(['lines', 'bytes']).default('lines').describe('Unit of offset and limit.'),
  offset: z.int().nonnegative().default(0).describe('Start, from 0.'),
  limit: z.int().positive().optional().describe(`At most ${MAX_BYTES} bytes are returned.`),
});

/** Reads a range of a tool output that prompts show only as a preview. */
export const readArtifactTool = defineTool({
  name: 'read_artifact',
  description: 'Reads a part of a stored tool output: what a preview left out.',
  schema: ArtifactArguments,
  idempotent: true,
  bounded: true,
  async run({ id, unit, offset, limit }, { artifacts }) {
    const name = id.trim().replace(/^@artifact\//, '');
    const text = await artifacts.read(name);
    if (text === null) throw new Error(`there is no artifact ${JSON.stringify(name)}`);
    return unit === 'lines'
      ? readLines(text, offset, limit ?? DEFAULT_LINES)
      : readBytes(Buffer.from(text), offset, limit ?? MAX_BYTES);
  },
});

function readLines(text: string, offset: number, limit: number): string {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (offset >= lines.length) return beyond('line', offset, lines.length);
  const taken: string[] = [];
  let bytes = 0;
  for (const line of lines.slice(offset, offset + limit)) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > MAX_BYTES && taken.length > 0) break;
    taken.push(line);
  }
  const [first = ''] = taken;
  if (Buffer.byteLength(first) > MAX_BYTES) {
    const start = Buffer.byteLength(lines.slice(0, offset).join('\n')) + (offset > 0 ? 1 : 0);
    const { part, end } = sliceBytes(Buffer.from(first), 0, MAX_BYTES);
    return `${part}\n[line ${offset} is longer than ${MAX_BYTES} bytes; continue with unit bytes, offset ${start + end}]`;
  }
  const end = offset + taken.length;
  const note = `lines ${offset} to ${end - 1} of ${lines.length}`;
  return `${taken.join('\n')}\n[${note}${end < lines.length ? `; continue with offset ${end}` : ''}]`;
}

function readBytes(bytes: Buffer, offset: number, limit: number): string {
  if (offset >= bytes.length) return beyond('byte', offset, bytes.length);
  const { part, start, end } = sliceBytes(bytes, offset, Math.min(limit, MAX_BYTES));
  const note = `bytes ${start} to ${end - 1} of ${bytes.length}`;
  return `${part}\n[${note}${end < bytes.length ? `; continue with offset ${end}` : ''}]`;
}

/** An error beyond the start, so that reads further and further beyond the end are recognised as repetitions. */
function beyond(unit: string, offset: number, size: number): string {
  const message = `nothing at ${unit} ${offset}: the artifact has ${size} ${unit}s`;
  if (offset > 0) throw new Error(message);
  return `[${message}]`;
}

/** Moves both ends to character boundaries, so that consecutive reads join without loss. */
function sliceBytes(
  bytes: Buffer,
  offset: number,
  limit: number,
): { part: string; start: number; end: number } {
  const start = characterStart(bytes, offset);
  let end = characterStart(bytes, Math.min(bytes.length, offset + limit));
  if (end <= start) end = characterStart(bytes, Math.min(bytes.length, start + 4));
  return { part: bytes.toString('utf8', start, end), start, end };
}

function characterStart(bytes: Buffer, at: number): number {
  let start = at;
  while (start > 0 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
