import type { Hono } from 'hono';
import { isGranted } from '../../access/index.ts';
import { Command } from '../../events/index.ts';
import { checkAuthor, withAuthor } from '../access/author-rule.ts';
import { callerOf, troupeOf } from '../access/caller.ts';
import { checkScope } from '../access/check-scope.ts';
import { unknownConversation } from '../access/limit-troupe.ts';
import { commandScope } from '../access/route-scopes.ts';
import { answerPage } from '../answer-page.ts';
import { readJson, readMessage } from '../read-json.ts';
import { rateLimited } from '../refusal.ts';
import {
  CommandRequest,
  ConversationPath,
  ConversationsQuery,
  CostQuery,
  EventsQuery,
  NewEventBody,
  PageQuery,
  parseInput,
  TasksQuery,
} from '../schemas.ts';

export function addConversationRoutes(app: Hono): void {
  app.get('/api/conversations', async (context) => {
    const query = parseInput(ConversationsQuery, context.req.query(), 'the query');
    return context.json(await troupeOf(context).listConversations(query));
  });

  app.get('/api/conversations/:c', async (context) =>
    context.json(await troupeOf(context).conversation(context.req.param('c'))),
  );

  // `:c` may be empty, so that a missing conversation is refused by its name.
  app.post('/api/conversations/:c{[^/]*}/events', async (context) => {
    const { conversation } = parseInput(
      ConversationPath,
      { conversation: context.req.param('c') },
      'the path',
    );
    const { principal, troupe, traffic } = callerOf(context);
    const body = withAuthor(principal, await readMessage(context));
    const message = parseInput(NewEventBody, body, 'the body');
    // What is refused anyway must not use up the rate of whose words it claims to be.
    if (!isGranted(principal, conversation)) throw unknownConversation(conversation);
    checkAuthor(principal, message.author);
    const wait = traffic.message(principal, principal.tenant, message.author);
    const { messagesPerSecond: limit } = traffic.limits;
    if (wait > 0) throw rateLimited(`at most ${limit} messages a second of one author`, limit, wait);
    const { kind, event } = await troupe.send(conversation, message);
    return context.json({ event }, kind === 'appended' ? 201 : 200);
  });

  app.get('/api/conversations/:c/events', async (context) => {
    const range = parseInput(EventsQuery, context.req.query(), 'the query');
    return context.json(await troupeOf(context).events(context.req.param('c'), range));
  });

  app.get('/api/conversations/:c/actors', async (context) =>
    context.json({ actors: await troupeOf(context).actors(context.req.param('c')) }),
  );

  app.get('/api/conversations/:c/tasks', async (context) => {
    const { open, skip } = parseInput(TasksQuery, context.req.query(), 'the query');
    const list = await troupeOf(context).tasks(context.req.param('c'), { open });
    return answerPage(context, { ...list }, 'tasks', skip);
  });

  app.get('/api/conversations/:c/agents/:a/prompt', async (context) => {
    const { skip } = parseInput(PageQuery, context.req.query(), 'the query');
    const prompt = await troupeOf(context).prompt(context.req.param('c'), context.req.param('a'));
    return answerPage(context, prompt, 'messages', skip);
  });

  app.get('/api/conversations/:c/agents/:a/cost', async (context) => {
    const { vendor, skip } = parseInput(CostQuery, context.req.query(), 'the query');
    const report = await troupeOf(context).cost(context.req.param('c'), context.req.param('a'), { vendor });
    return answerPage(context, { ...report }, 'rows', skip);
  });

  app.post('/api/commands', async (context) => {
    const { principal, troupe } = callerOf(context);
    const body = withAuthor(principal, await readJson(context));
    const { author, ...given } = parseInput(CommandRequest, body, 'the body');
    const command = parseInput(Command, given, 'the body');
    checkScope(principal, commandScope(command));
    const event = await troupe.command(command, author);
    return context.json({ event, seq: event.seq }, 202);
  });
}
