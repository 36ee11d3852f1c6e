import { hostname, platform } from 'node:os';
import { expect, test } from 'vitest';
import * as z from 'zod';
import type { AgentId, ConversationId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { type Company, company, ROOM, UMA } from '../support/company.ts';
import { untilHolds } from '../support/until-holds.ts';
import { caller, mcpRoom, stdioStage } from '../tools/mcp-stage.ts';

/** The lines with an item of the reminder, in every user message of the last request. */
function told(room: Company, agent: string, item: string): string[] {
  const lines = new RegExp(`^${item}: .*$`, 'gm');
  return room
    .raw(agent)
    .filter(({ role }) => role === 'user')
    .map(({ content }) => (content?.match(lines) ?? []).join(' | '));
}

function through(room: Company, channel: string, to: string, content: string) {
  return room.troupe.send(ROOM, { author: UMA, to: [to], content, channel });
}

test('the door of a message is described once, and when it changes', async () => {
  const definition = { channels: { pager: 'at most 200 characters, no files' } };
  await using room = await company(['p'], { definition });
  for (const [n, channel] of ['http', 'pager', 'pager', 'http', 'cli'].entries()) {
    await through(room, channel, 'p', `${n}`);
    await room.troupe.idle();
  }
  expect(told(room, 'p', 'channel')).toEqual([
    '',
    'channel: pager: at most 200 characters, no files',
    '',
    'channel: http',
    'channel: cli: a terminal, which shows plain text and no images',
  ]);
  const before = room.raw('p', 4);
  expect(room.raw('p', 5).slice(0, before.length)).toEqual(before);
});

test('a worker, which does not speak with people, is told of no door', async () => {
  const agents = { boss: { role: 'manager' }, w: { role: 'worker' } } as const;
  await using room = await company(['boss', 'w'], { agents });
  await through(room, 'cli', 'w', 'hi');
  await room.troupe.idle();
  expect(told(room, 'w', 'channel')).toEqual(['']);
});

test('the machine is described only where the definition says so, and the host is named only on request', async () => {
  const texts: string[] = [];
  for (const machine of [undefined, 'system', 'host'] as const) {
    await using room = await company(['p'], { definition: machine ? { machine } : {} });
    await room.say(UMA, 'p', 'hi');
    texts.push(/# The machine\n(.*)/.exec(room.system('p'))?.[1] ?? '');
  }
  const [none, system, host] = texts;
  expect(none).toBe('');
  expect(system).toMatch(new RegExp(`^${platform()} .*, time zone \\S+$`));
  expect(host).toBe(`${hostname()}: ${system}`);
});

test('an agent that is paused or has left is named to those who could reach it, until it is back', async () => {
  const agents = { boss: { tools: ['delegate'] } };
  await using room = await company(['boss', 'w', 'x', 'alone'], { agents });
  const order = (command: 'pause' | 'resume' | 'leave', agent: string) =>
    room.troupe.command({ command, conversation: ROOM as ConversationId, agent: agent as AgentId }, UMA);
  await room.say(UMA, ['boss', 'w', 'x', 'alone'], 'hi');
  await order('pause', 'w');
  await order('leave', 'x');
  await room.say(UMA, ['boss', 'alone'], 'and now?');
  await room.say(UMA, 'boss', 'and again?');
  await order('resume', 'w');
  await room.say(UMA, 'boss', 'and then?');
  expect(told(room, 'boss', 'unavailable').filter(Boolean)).toEqual([
    'unavailable: @w is paused; @x has left',
    'unavailable: @x has left',
  ]);
  expect(told(room, 'alone', 'unavailable').filter(Boolean)).toEqual([]);
});

test('a tool server that was lost is named until a call reaches it again', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/*'], { die: ['files__die'], sum: ['files__add', { a: 1, b: 1 }] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  const items: (string | undefined)[] = [];
  for (const word of ['sum', 'die', 'sum', 'sum']) {
    await room.call('ana', word);
    const { events } = await room.troupe.events(ROOM);
    const started = events.findLast((event) => event.kind === 'turn.started');
    items.push(started?.kind === 'turn.started' ? started.body.live['unavailable'] : 'no turn');
  }
  const lost = 'the tool server files was lost; a call tries it again';
  expect(items).toEqual([undefined, undefined, lost, 'nothing any more']);
});

test('a tool that its server withdraws is named until it is offered again', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/add', 'files/wait', 'files/change'], {
    withdraw: ['files__change', { withdraw: 'wait' }],
    restore: ['files__change', {}],
    look: ['files__add', { a: 1, b: 1 }],
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  /** What was told, each text once: long waits restate it. */
  const toldNow = async () => {
    await room.call('ana', 'look');
    const { events } = await room.troupe.events(ROOM);
    const items = events.flatMap((event) =>
      event.kind === 'turn.started' ? (event.body.live['unavailable'] ?? []) : [],
    );
    return [...new Set(items)];
  };
  await room.call('ana', 'withdraw');
  const gone = 'files__wait is no longer offered by its server';
  await untilHolds(async () => expect(await toldNow()).toEqual([gone]));
  await room.call('ana', 'restore');
  await untilHolds(async () => expect(await toldNow()).toEqual([gone, 'nothing any more']));
});

test('tools whose calls wait for a person are named in the system message', async () => {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    schema: z.object({}),
    needsApproval: { by: ['u1'] },
    run: () => 'paid',
  });
  await using room = await company(['p'], { tools: [pay], agents: { p: { tools: ['pay'] } } });
  await room.say(UMA, 'p', 'hi');
  expect(room.system('p')).toContain(
    "Calls of these tools wait for a person's approval: pay (every call of u1). All other tools need none.",
  );
});

test('the agent of `routing` is told that messages without an addressee come to it', async () => {
  await using room = await company(['p', 'q'], {
    definition: { routing: { by: 'agent', agent: 'p' as AgentId } },
  });
  await room.say(UMA, ['p', 'q'], 'hi');
  expect(room.system('p')).toContain('Messages that address nobody come to you.');
  expect(room.system('q')).not.toContain('Messages that address nobody come to you.');
});
