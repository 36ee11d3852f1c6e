import * as z from 'zod';
import type { Answer } from '../../library/troupe.ts';
import { TroupeError } from '../../base/errors.ts';
import { typed } from '../answers.ts';
import { holdPlace } from '../open-stream.ts';
import { defineRoute } from '../route.ts';
import { StoredSeq } from '../schemas.ts';

/** A request waits this long, ms, so that proxies do not end it; then the client asks again. */
const WAIT_MS = 20_000;

/** What came of a message. Its events are in the log. */
type ToldAnswer = Omit<Answer, 'events'>;

export const answerRoute = defineRoute({
  method: 'GET',
  path: '/api/conversations/{conversation}/answer',
  scopes: ['read'],
  id: 'getAnswer',
  summary:
    'What came of a stored message, by its `seq`: words, replies, waits and failures. Waits up to 20 s for it; `answer` is null if agents are still at work: ask again',
  query: z.object({ seq: StoredSeq }),
  answer: z.object({ answer: typed<ToldAnswer | null>({ type: ['object', 'null'] }) }),
  async handle({ context, params, query, caller }, { clock, signal }) {
    const place = holdPlace({ caller, clock, signal });
    try {
      const ends = AbortSignal.any([place.ends, context.req.raw.signal]);
      const parts = caller.troupe.rejoin(params.conversation, query.seq, {
        signal: ends,
        timeoutMs: WAIT_MS,
      });
      let next = await parts.next();
      while (!next.done) next = await parts.next();
      const { events: _, ...answer } = next.value;
      return { answer };
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'aborted') return { answer: null };
      throw error;
    } finally {
      place.end();
    }
  },
});
