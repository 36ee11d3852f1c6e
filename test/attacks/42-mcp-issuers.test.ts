import { expect } from 'vitest';
import { startFakeIssuer } from '../support/fake-issuer.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { caller, mcpRoom } from '../tools/mcp-stage.ts';
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
    await using room = await mcpRoom(
      { agents: [caller('bo', ['web/*'], {})], mcpServers: { web: { url: web.url, oauth } } },
      { env: { SECRET: 'hush-hush' } },
    );
    expect(room.warnings).toEqual([
      expect.stringMatching(/mcpServers\.web: it cannot be used: .*(not followed|maximum size)/),
    ]);
    expect(issuer.requests).toEqual([]);
    refused('a warning with the server');
  }
});
