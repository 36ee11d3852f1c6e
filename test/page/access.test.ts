import { expect } from 'vitest';
import { detail, eventually, happened, pageTest, shared, useBrowser } from './browser.ts';
import { playFailed, playQuestion } from './fixtures.ts';
import { OFFICE } from './office.ts';
import { openStage, type PageStage, type StageOptions, WRITE_TOKEN } from './stage.ts';

const browsing = useBrowser();
const TOKEN = 'a-token-of-the-server';

async function stageWith(options: StageOptions): Promise<PageStage> {
  const stage = await openStage(OFFICE, options);
  await playFailed(stage, 'failed');
  await playQuestion(stage, 'question');
  return stage;
}

const readOnly = shared(() => stageWith({ app: { readOnly: true } }));
const guarded = shared(() => stageWith({ app: { token: TOKEN } }));
const mounted = shared(() => stageWith({ mount: '/inspector' }));

pageTest('a read-only server shows everything, disables all buttons and refuses writes', async () => {
  const page = await browsing.open(`${readOnly().url}c/failed?agent=writer`);
  await happened(page).getByText('provider_quota').first().waitFor();
  const buttons = page.getByRole('button', {
    name: /^(Retry|Pause|Retire|Fork|Run again|Start a new|New conversation)/,
  });
  await buttons.first().waitFor();
  for (const button of await buttons.all())
    expect(await button.isDisabled(), await button.innerText()).toBe(true);
  expect(await page.getByRole('textbox', { name: 'Message' }).isDisabled()).toBe(true);
  await page.goto(`${readOnly().url}c/question`);
  const answer = page.getByRole('region', { name: 'Waiting for you' }).getByRole('button', { name: 'calm' });
  await answer.waitFor();
  expect(await answer.isDisabled()).toBe(true);
  const body = JSON.stringify({ command: 'retry', turn: 'failed:writer:1' });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${readOnly().url}api/commands`, { method: 'POST', headers, body });
  expect(response.status).toBe(403);
  expect(await response.json()).toMatchObject({ error: { code: 'read_only' } });
});

pageTest(
  'a server with a token asks for it, refuses a wrong one and keeps the right one for the tab',
  async () => {
    browsing.expectErrors(/401/);
    const page = await browsing.open(`${guarded().url}c/failed`);
    await page.getByRole('heading', { name: 'This server requires a token' }).waitFor();
    expect(await page.locator('body').innerText()).not.toContain('Writer');
    const field = page.getByLabel('Token', { exact: true });
    await field.fill('a wrong one');
    await page.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('heading', { name: 'This server requires a token' }).waitFor();
    await field.fill(TOKEN);
    await page.getByRole('button', { name: 'Open' }).click();
    await eventually(() => page.getByRole('region', { name: 'Agents' }).innerText()).toContain('Writer');
    await page.reload();
    await eventually(() => page.getByRole('region', { name: 'Agents' }).innerText()).toContain('Writer');
    expect(page.url()).not.toContain(TOKEN);
  },
);

pageTest('a token in the fragment opens the page at once and is removed from the address', async () => {
  const page = await browsing.open(`${guarded().url}c/failed#token=${TOKEN}`);
  await eventually(() => page.getByRole('region', { name: 'Agents' }).innerText()).toContain('Writer');
  expect(page.url()).not.toContain(TOKEN);
  await detail(page).getByRole('button', { name: 'Pause' }).first().click();
  await guarded().until('failed', ({ kind }) => kind === 'command');
});

pageTest('a page mounted under a path has its files, API and links under that path', async () => {
  const paths = new Set<string>();
  const page = await browsing.open(mounted().url);
  page.on('request', (request) => paths.add(new URL(request.url()).pathname));
  await page.getByRole('region', { name: 'Failed' }).getByRole('link').first().click();
  await eventually(() => page.getByRole('region', { name: 'Agents' }).innerText()).toContain('Writer');
  await happened(page).getByRole('link', { name: 'Turns' }).click();
  await happened(page)
    .getByRole('link', { name: /Researcher.*read_report/ })
    .click();
  await page.getByRole('tab', { name: 'Prompt' }).click();
  await page.getByText('of 32,000 tokens').waitFor();
  expect(decodeURIComponent(new URL(page.url()).pathname)).toBe('/inspector/c/failed/t/failed:researcher:2');
  await page.reload();
  await page.getByText('of 32,000 tokens').waitFor();
  expect([...paths].filter((path) => !path.startsWith('/inspector/'))).toEqual([]);
  await page.getByRole('tab', { name: 'State' }).click();
  await page.goto(`${mounted().url}c/failed?agent=writer`);
  await detail(page)
    .getByRole('group', { name: 'Available commands' })
    .getByRole('button', { name: 'Retry' })
    .click();
  await happened(page).getByText('From Monday on').first().waitFor();
});

pageTest('a foreign page cannot write, nor our own page with the token of an earlier start', async () => {
  const url = `${mounted().url}api/commands`;
  const body = JSON.stringify({ command: 'pause', conversation: 'failed', agent: 'critic' });
  const ask = async (headers: Record<string, string>) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body };
    return (await fetch(url, init)).status;
  };
  const origin = new URL(url).origin;
  expect(await ask({ origin: 'http://evil.example', 'x-troupe-token': WRITE_TOKEN })).toBe(403);
  expect(await ask({ origin })).toBe(403);
  expect(await ask({ origin, 'x-troupe-token': 'another' })).toBe(403);
  expect(await ask({ origin, 'x-troupe-token': WRITE_TOKEN })).toBe(202);
});

pageTest('the page may connect only to its own server', async () => {
  const response = await fetch(mounted().url, { headers: { accept: 'text/html' } });
  expect(response.headers.get('content-security-policy')).toContain("default-src 'self'");
  const html = await response.text();
  expect(html).not.toMatch(/https?:\/\//);
});
