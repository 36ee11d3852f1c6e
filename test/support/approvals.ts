import { expect } from 'vitest';
import * as z from 'zod';
import type { Author, Event, EventOf } from '../../src/events/index.ts';
import { type Approval, defineTool, type Tool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/troupe.ts';
import { invalidities } from './check-prompt.ts';
import { ANA, type Stage } from './engine-stage.ts';

/** What tests of approvals share: a mail that people have to agree to, and people who do. */
export const BEN: Author = { kind: 'user', id: 'u2', name: 'Ben' };

/** A tool that writes down each run of it. */
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

export function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

/** What is asked for first of what is open. */
export async function requestIn(troupe: Pick<Troupe, 'tasks'>): Promise<string> {
  const { tasks } = await troupe.tasks('c', { open: true });
  return tasks[0]?.id ?? '';
}

export function decide(
  troupe: Pick<Troupe, 'command'>,
  request: string,
  approved: boolean,
  { by = ANA, ...more }: { by?: Author; note?: string; argsHash?: string } = {},
): Promise<Event> {
  return troupe.command(
    { command: 'decide', conversation: 'c' as Event['conversation'], request, approved, ...more },
    by,
  );
}

/** Every request could be sent to a vendor, and the log is legal. */
export async function wellFormed(
  stage: Stage,
  requests: readonly { messages: Parameters<typeof invalidities>[0] }[],
): Promise<void> {
  for (const { messages } of requests) expect(invalidities(messages)).toEqual([]);
  expect(await stage.check('c')).toEqual([]);
  expect(stage.warnings).toEqual([]);
}
