import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AppOptions, createApp, nodeListener } from '../../../src/http/api/index.ts';
import { DOORS } from '../../../src/library/integrations/door.ts';
import { checkAnswers } from '../../../test/support/check-answers.ts';
import { company, type Company, type CompanyOptions } from '../../../test/support/company.ts';

/** A company on a real socket, with all doors open. */
export interface Stage extends Company {
  url: string;
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
