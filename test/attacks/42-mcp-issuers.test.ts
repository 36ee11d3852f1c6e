import { expect } from 'vitest';
import { createTroupe } from '../../src/runtime.ts';
import { startFakeIssuer } from '../support/fake-issuer.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { attack } from './attack.ts';

const INTERNAL = 'http://169.254.169.254/latest/meta-data';

attack(42, 'an issuer that redirects to an internal host, or sends metadata without end', async (refused) => {
  for (const odd of [{ redirectsTo: INTERNAL }, { isEndless: true }]) {
    await using issuer = await startFakeIssuer(odd);
    await using web = await startMcpHttpServer(0, {
      accepts: (authorization) => issuer.isCurrent(authorization),
      issuer: issuer.url,
    });
    const oauth = { issuer: issuer.url, clientId: 'crew', clientSecretEnv: 'SECRET' };
    const opening = createTroupe(
      {
        agents: [{ id: 'bo', provider: 'scripted', script: { rules: [{}] }, tools: ['web/*'] }],
        mcpServers: { web: { url: web.url, oauth } },
      },
      { env: { SECRET: 'hush-hush' }, onWarning: () => undefined },
    );
    await expect(opening).rejects.toMatchObject({ code: 'config_invalid' });
    expect(issuer.requests).toEqual([]);
    refused('config_invalid');
  }
});
