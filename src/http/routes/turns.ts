import * as z from 'zod';
import type { PromptDiff, TurnComparison, TurnTrace } from '../../library/troupe.ts';
import { answerPage } from '../answer-page.ts';
import { type Part, SentPromptAnswer, typed } from '../answers.ts';
import { defineRoute } from '../route.ts';
import { PageQuery, Step } from '../schemas.ts';
import { IN_PARTS } from './conversations.ts';

export const turnRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}',
    scopes: ['read'],
    id: 'getTurn',
    summary: `Events and model calls of a turn. ${IN_PARTS}`,
    query: PageQuery,
    answer: typed<Part<TurnTrace>>(),
    handle: async ({ context, troupe, params, query: { skip } }) =>
      answerPage(context, { ...(await troupe.trace(params.turn)) }, 'events', skip),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}/prompt',
    scopes: ['read'],
    id: 'getSentPrompt',
    summary: `A prompt as it was sent; by default of the last step. ${IN_PARTS}`,
    query: PageQuery.extend({ step: Step }),
    answer: SentPromptAnswer,
    handle: async ({ context, troupe, params, query: { step, skip } }) =>
      answerPage(context, await troupe.promptOf(params.turn, step), 'messages', skip),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}/diff/{other}',
    scopes: ['read'],
    id: 'comparePrompts',
    summary:
      "Changes between two prompts of an agent: layers, message lines, and why the cache broke. The other may be 'next'. Beyond 1,000 messages or a million characters, `omitted` counts the rest",
    query: z.object({ stepA: Step, stepB: Step }),
    answer: typed<PromptDiff>(),
    handle: ({ troupe, params, query }) => troupe.diff(params.turn, params.other, query),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/turns/{turn}/compare/{other}',
    scopes: ['read'],
    id: 'compareTurns',
    summary:
      'Two turns side by side, for a turn that was run again: words, calls with their results, tokens, cost, time. Beyond 200 calls, `omitted` counts the rest',
    answer: typed<TurnComparison>(),
    handle: ({ troupe, params }) => troupe.compare(params.turn, params.other),
  }),
] as const;
