import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as z from 'zod';
import { type AppOptions, createApp, nodeListener } from '../../../src/http/api/index.ts';
import { DOORS } from '../../../src/library/integrations/door.ts';
import { defineTool } from '../../../src/tools/tool.ts';
import { checkAnswers } from '../../../test/support/check-answers.ts';
import { company, type Company, type CompanyOptions } from '../../../test/support/company.ts';

/** A company on a real socket, with all doors open. */
export interface Stage extends Company {
  url: string;
}

/** Waits for a person. */
export const PAY = defineTool({
  name: 'pay',
  description: 'Pays.',
  schema: z.object({ euros: z.number() }),
  needsApproval: true,
  run: ({ euros }) => `paid ${euros}`,
});
export const PAYS = { calls: [{ name: 'pay', args: '{"euros":5}' }] };

/** Waits for a person. */
export const REFUND = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  schema: z.object({ order: z.number() }),
  needsApproval: true,
  run: ({ order }) => `order ${order} is refunded`,
});
export const REFUNDS = { text: 'I refund it.', calls: [{ name: 'refund', args: '{"order":4}' }] };
export const HANDS_OVER = {
  text: 'One moment.',
  calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund order 4"}' }],
};
/** A support desk that hands over to billing, which refunds order 4 if a person approves. */
export const DESK = {
  tools: [REFUND],
  agents: {
    desk: { name: 'Desk', tools: ['handoff'] },
    billing: { name: 'Billing', tools: ['refund'] },
  },
  answers: { desk: [HANDS_OVER], billing: [REFUNDS, 'Your money is back.'] },
} satisfies CompanyOptions;

/** An answer of a model that waits for `release`. `asked` resolves when the model is asked. */
export function heldReply(text: string) {
  const asked = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  return {
    asked: asked.promise,
    release: () => open.resolve(),
    answer: async () => {
      asked.resolve();
      await open.promise;
      return { text };
    },
  };
}

/** `isKeyed`: only callers with a key of the troupe are admitted. */
export async function openStage(
  ids: readonly string[],
  {
    app: appOptions = {},
    isKeyed = false,
    definition,
    ...options
  }: CompanyOptions & { app?: AppOptions; isKeyed?: boolean } = {},
): Promise<Stage> {
  const room = await company(ids, { ...options, definition: { doors: DOORS, ...definition } });
  const { troupe } = room;
  const authenticate = (credential: string) => troupe.authenticate(credential);
  const app = createApp(troupe, { ...appOptions, ...(isKeyed && { authenticate, keyless: 'refused' }) });
  checkAnswers(app);
  const server = createServer(nodeListener(app));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    ...room,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await room[Symbol.asyncDispose]();
    },
  };
}

/** A key for conversations whose ids begin with `mine-`. */
export async function keyOfMine({ troupe }: Company): Promise<string> {
  const scopes = ['read', 'write'] as const;
  const issued = await troupe.keys.create({ name: 'phone', scopes: [...scopes], conversations: ['mine-*'] });
  return issued.secret;
}

/** Status and code of the refusal of a body. */
export async function refusalOf(address: string, body: unknown): Promise<[status: number, code: string]> {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error } = (await response.json()) as { error: { code: string } };
  return [response.status, error.code];
}
