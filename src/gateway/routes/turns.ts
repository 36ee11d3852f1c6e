import type { Hono } from 'hono';
import { troupeOf } from '../access/caller.ts';
import { DiffQuery, parseInput, StepQuery } from '../schemas.ts';

export function addTurnRoutes(app: Hono): void {
  app.get('/api/turns/:t', async (context) =>
    context.json(await troupeOf(context).trace(context.req.param('t'))),
  );

  app.get('/api/turns/:t/prompt', async (context) => {
    const { step } = parseInput(StepQuery, context.req.query(), 'the query');
    return context.json(await troupeOf(context).promptOf(context.req.param('t'), step));
  });

  app.get('/api/turns/:a/diff/:b', async (context) => {
    const steps = parseInput(DiffQuery, context.req.query(), 'the query');
    return context.json(await troupeOf(context).diff(context.req.param('a'), context.req.param('b'), steps));
  });
}
