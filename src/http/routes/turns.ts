import type { Hono } from 'hono';
import { troupeOf } from '../access/caller.ts';
import { answerPage } from '../answer-page.ts';
import { DiffQuery, PageQuery, parseInput, StepQuery } from '../schemas.ts';

export function addTurnRoutes(app: Hono): void {
  app.get('/api/turns/:t', async (context) => {
    const { skip } = parseInput(PageQuery, context.req.query(), 'the query');
    const trace = await troupeOf(context).trace(context.req.param('t'));
    return answerPage(context, { ...trace }, 'events', skip);
  });

  app.get('/api/turns/:t/prompt', async (context) => {
    const { step, skip } = parseInput(StepQuery, context.req.query(), 'the query');
    const prompt = await troupeOf(context).promptOf(context.req.param('t'), step);
    return answerPage(context, prompt, 'messages', skip);
  });

  app.get('/api/turns/:a/diff/:b', async (context) => {
    const steps = parseInput(DiffQuery, context.req.query(), 'the query');
    return context.json(await troupeOf(context).diff(context.req.param('a'), context.req.param('b'), steps));
  });
}
