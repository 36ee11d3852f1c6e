import * as z from 'zod';
import { Join } from '../../events/index.ts';
import { defineTool } from '../tool.ts';

const WAITING = {
  wait: z
    .boolean()
    .default(true)
    .describe('Whether your turn ends here; the result wakes you either way. Default true.'),
  until: Join.default('all').describe(
    'Where you give several tasks at once: you are woken when all have ended, when the first has ended, or when any has a result. The others are then called off.',
  ),
  deadlineMinutes: z.number().positive().max(525_600).optional().describe('Called off after this long.'),
};

function waitingOf({ wait, until, deadlineMinutes }: z.output<z.ZodObject<typeof WAITING>>) {
  return {
    wait,
    join: until,
    ...(deadlineMinutes !== undefined && { deadlineMs: deadlineMinutes * 60_000 }),
  };
}

/** The engine decides whether the agent exists and may be given the task. */
export const delegateTool = defineTool({
  name: 'delegate',
  description:
    'Gives a task to another agent, who sees the task alone and not this conversation. You are woken with its result. Several calls at once run side by side.',
  schema: z.object({
    to: z.string().min(1).describe('Id of the agent.'),
    task: z.string().min(1).describe('What to do, with everything that one must know for it.'),
    force: z.boolean().default(false).describe('Also if that agent waits for your work.'),
    ...WAITING,
  }),
  idempotent: true,
  run: ({ to, task, force, ...waiting }) => ({
    text: '',
    request: { kind: 'delegate', how: 'delegate', to, task, force, ...waitingOf(waiting) },
  }),
});

/** Addresses all people of the conversation. */
const PEOPLE = 'people';

export const askTool = defineTool({
  name: 'ask',
  description:
    'Asks another agent, or the people of this conversation, a question. You are woken with the answer. An agent sees the question alone.',
  schema: z.object({
    to: z.string().min(1).default(PEOPLE).describe(`Id of an agent, or "${PEOPLE}". Default "${PEOPLE}".`),
    question: z.string().min(1),
    by: z
      .array(z.string().min(1))
      .max(50)
      .default([])
      .describe('Ids of the people who may answer. Default: all.'),
    choices: z.array(z.string().min(1)).min(2).max(20).optional().describe('Answers to choose from.'),
    ...WAITING,
  }),
  idempotent: true,
  run({ to, question, by, choices, ...waiting }) {
    const rest = waitingOf(waiting);
    if (to.trim().replace(/^@/, '') !== PEOPLE) {
      return {
        text: '',
        request: { kind: 'delegate', how: 'ask', to, task: question, force: false, ...rest },
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
    'Says more to an agent about a task that you gave it: it goes on where it stopped, with its earlier work before its eyes. You are woken with the new result.',
  schema: z.object({
    task: z.string().min(1).describe('Id of the task, as d-1a2b3c4d5e6f, or its beginning.'),
    text: z.string().min(1),
    ...WAITING,
  }),
  idempotent: true,
  run: ({ task, text, ...waiting }) => ({
    text: '',
    request: { kind: 'followUp', task, text, ...waitingOf(waiting) },
  }),
});

export const cancelTaskTool = defineTool({
  name: 'cancel_task',
  description: 'Calls off a task that you gave to another agent, and all that it has given to others for it.',
  schema: z.object({
    task: z.string().min(1).describe('Id of the task, or its beginning.'),
    reason: z.string().default(''),
  }),
  idempotent: true,
  run: ({ task, reason }) => ({ text: '', request: { kind: 'cancelTask', task, reason } }),
});

export const remindTool = defineTool({
  name: 'remind',
  description: 'Wakes you later with a note of yours, also if this conversation is quiet until then.',
  schema: z
    .object({
      text: z.string().min(1).describe('What you will want to know then.'),
      at: z.iso.datetime({ offset: true }).optional().describe('When, as 2026-11-21T22:05:00Z.'),
      inMinutes: z.number().positive().max(525_600).optional().describe('Or in how many minutes.'),
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
