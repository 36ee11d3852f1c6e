import type { Hono } from 'hono';
import { Command } from '../../events/index.ts';
import type { Troupe } from '../../troupe.ts';
import { readJson, readMessage } from '../read-json.ts';
import {
  CommandRequest,
  ConversationPath,
  ConversationsQuery,
  CostQuery,
  EventsQuery,
  NewEventBody,
  parseInput,
  TasksQuery,
} from '../schemas.ts';

export function addConversationRoutes(app: Hono, troupe: Troupe): void {
  app.get('/api/conversations', async (context) => {
    const { limit } = parseInput(ConversationsQuery, context.req.query(), 'the query');
    return context.json({ conversations: await troupe.conversations(limit) });
  });

  app.get('/api/conversations/:c', async (context) =>
    context.json(await troupe.conversation(context.req.param('c'))),
  );

  // `:c` may be empty, so that a missing conversation is refused by its name.
  app.post('/api/conversations/:c{[^/]*}/events', async (context) => {
    const { conversation } = parseInput(
      ConversationPath,
      { conversation: context.req.param('c') },
      'the path',
    );
    const message = parseInput(NewEventBody, await readMessage(context.req.raw), 'the body');
    const { kind, event } = await troupe.send(conversation, message);
    return context.json({ event }, kind === 'appended' ? 201 : 200);
  });

  app.get('/api/conversations/:c/events', async (context) => {
    const range = parseInput(EventsQuery, context.req.query(), 'the query');
    return context.json(await troupe.events(context.req.param('c'), range));
  });

  app.get('/api/conversations/:c/actors', async (context) =>
    context.json({ actors: await troupe.actors(context.req.param('c')) }),
  );

  app.get('/api/conversations/:c/tasks', async (context) => {
    const { open } = parseInput(TasksQuery, context.req.query(), 'the query');
    return context.json(await troupe.tasks(context.req.param('c'), { open }));
  });

  app.get('/api/conversations/:c/agents/:a/prompt', async (context) =>
    context.json(await troupe.prompt(context.req.param('c'), context.req.param('a'))),
  );

  app.get('/api/conversations/:c/agents/:a/cost', async (context) => {
    const { vendor } = parseInput(CostQuery, context.req.query(), 'the query');
    return context.json(await troupe.cost(context.req.param('c'), context.req.param('a'), { vendor }));
  });

  app.post('/api/commands', async (context) => {
    const body = await readJson(context.req.raw);
    const { author, ...command } = parseInput(CommandRequest, body, 'the body');
    const event = await troupe.command(parseInput(Command, command, 'the body'), author);
    return context.json({ event, seq: event.seq }, 202);
  });
}
