import type { Hono } from 'hono';
import type { Troupe } from '../../troupe.ts';
import { DiffQuery, parseInput, StepQuery } from '../schemas.ts';

export function addTurnRoutes(app: Hono, troupe: Troupe): void {
  app.get('/api/turns/:t', async (context) => context.json(await troupe.trace(context.req.param('t'))));

  app.get('/api/turns/:t/prompt', async (context) => {
    const { step } = parseInput(StepQuery, context.req.query(), 'the query');
    return context.json(await troupe.promptOf(context.req.param('t'), step));
  });

  app.get('/api/turns/:a/diff/:b', async (context) => {
    const steps = parseInput(DiffQuery, context.req.query(), 'the query');
    return context.json(await troupe.diff(context.req.param('a'), context.req.param('b'), steps));
  });
}
