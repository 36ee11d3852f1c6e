import { expect, test } from 'vitest';
import { ANA, startApi } from './harness.ts';

async function nameOf(conversation: string, query: string): Promise<string | null> {
  await using api = await startApi();
  await api.troupe.send(conversation, { author: ANA, content: 'hello' });
  const path = `/api/conversations/${encodeURIComponent(conversation)}/export${query}`;
  const answer = await api.app.request(path);
  expect(answer.status).toBe(200);
  await answer.text();
  return answer.headers.get('content-disposition');
}

test('an export is a download with the name of its conversation', async () => {
  expect(await nameOf('acme-launch', '')).toBe('attachment; filename="acme-launch.jsonl"');
  expect(await nameOf('acme-launch', '?format=html')).toBe('attachment; filename="acme-launch.html"');
});

test('characters that a file name cannot have are replaced', async () => {
  expect(await nameOf('team@acme:2', '')).toBe('attachment; filename="team@acme_2.jsonl"');
});
