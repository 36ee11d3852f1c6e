import { createSlackAdapter } from '@chat-adapter/slack';
import { createMemoryState } from '@chat-adapter/state-memory';
import { serve } from '@hono/node-server';
import { createTroupeClient } from '@troupe/client';
import { openRoom } from './room.ts';

const { TROUPE_URL: url = 'http://127.0.0.1:4600', TROUPE_KEY: token, PORT = '3000' } = process.env;

const chat = openRoom({
  troupe: createTroupeClient({ url, token }),
  slack: createSlackAdapter(), // SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET
  state: createMemoryState(),
});
serve({ port: Number(PORT), fetch: (request) => chat.webhooks.slack(request) });
console.log(`Slack's request URL for events and interactivity is port ${PORT} of this machine`);
