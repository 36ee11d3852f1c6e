import { expect } from 'vitest';
import * as z from 'zod';
import type { Author, Event, EventOf } from '../../src/events/index.ts';
import { type Approval, defineTool, type Tool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { invalidities } from './check-prompt.ts';
import { asks, inOrder, says } from './engine-models.ts';
import { ANA, openStage, type Stage } from './engine-stage.ts';
import { openDriver } from './mode.ts';

/** Shared setup of the approval tests: a mail tool that needs approval, and the people who approve. */
export const BEN: Author = { kind: 'user', id: 'u2', name: 'Ben' };

/** A tool that records each of its runs. */
export function mailer(needsApproval: Approval = true): { sent: string[]; mail: Tool } {
  const sent: string[] = [];
  const mail = defineTool({
    name: 'mail',
    description: 'Sends a mail.',
    schema: z.object({ to: z.string() }),
    needsApproval: needsApproval as never,
    run({ to }) {
      sent.push(to);
      return `sent to ${to}`;
    },
  });
  return { sent, mail };
}

/** A process in which @bo has asked to send a mail to Eve, and that has then stopped. `open` begins another one on its store. */
export async function askedAndStopped() {
  const { sent, mail } = mailer();
  const bo = inOrder(asks(['mail', { to: 'eve' }]), says('sent'));
  const driver = await openDriver();
  const open = (own = driver) =>
    openStage({ driver: own, tools: [mail], agents: [{ id: 'bo', model: bo, tools: ['mail'] }] });
  const first = await open();
  await first.say('c', 'write to eve', ['bo']);
  await first.quiet();
  await first.engine.stop();
  return { sent, driver, open, request: await requestIn(first.troupe) };
}

/** A definition whose @bo asks to send a mail to Eve, and is done when it is sent. */
export function scriptedMailer() {
  const { sent, mail } = mailer();
  const rules = [
    { when: { contains: 'sent to' }, reply: 'done' },
    { reply: '', calls: [{ name: 'mail', args: { to: 'eve' } }] },
  ];
  const bo = { id: 'bo', provider: 'scripted' as const, script: { rules }, tools: ['mail'] };
  return { sent, definition: { agents: [bo], tools: [mail] } };
}

export function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** Id of the first open request for approval. */
export async function requestIn(troupe: Pick<Troupe, 'tasks'>): Promise<string> {
  const { tasks } = await troupe.tasks('c', { open: true });
  return tasks[0]?.id ?? '';
}

export function decide(
  troupe: Pick<Troupe, 'command'>,
  request: string,
  approved: boolean,
  {
    by = ANA,
    ...more
  }: { by?: Author; note?: string; argsHash?: string; args?: Record<string, unknown> } = {},
): Promise<Event> {
  return troupe.command(
    { command: 'decide', conversation: 'c' as Event['conversation'], request, approved, ...more },
    by,
  );
}

/** Checks that a vendor would accept every request, and that the log is legal. */
export async function wellFormed(
  stage: Stage,
  requests: readonly { messages: Parameters<typeof invalidities>[0] }[],
): Promise<void> {
  for (const { messages } of requests) expect(invalidities(messages)).toEqual([]);
  expect(await stage.check('c')).toEqual([]);
  expect(stage.warnings).toEqual([]);
}
