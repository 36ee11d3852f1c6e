import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { openWorld } from './world-stage.ts';

/** Somebody on call opens a world that they do not know. */
const browsing = useBrowser();
const world = shared(() => openWorld({ needsKey: true }));

const openWith = (key: string, path = '', more = {}) =>
  browsing.open(`${world().url}${path}#token=${world().keys[key]}`, more);

pageTest('the header says who uses the page: tenant, key, author and what the key may do', async () => {
  const page = await openWith('ben');
  await page.locator('.caller summary').click();
  const box = page.locator('.caller-box');
  await box.getByText('Ben Okafor (ben)').waitFor();
  expect(await box.innerText()).toMatch(/Tenant\s+default[^]*key:[^]*✓ read conversations[^]*– pause, abort/);
  await box.getByRole('button', { name: 'Use another key' }).click();
  await box.getByLabel('Token', { exact: true }).fill(world().keys['refunds only'] ?? '');
  await box.getByRole('button', { name: 'Open' }).click();
  await page.getByText('Operator', { exact: true }).waitFor();
  await page.locator('.caller summary').click();
  expect(await page.locator('.caller-box').innerText()).toContain('refund-*');
  browsing.expectErrors(/401/);
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('heading', { name: 'This server requires a token' }).waitFor();
});

pageTest('a wrong key is refused in words, and so is one without the scope read', async () => {
  browsing.expectErrors(/40[13]/);
  const page = await browsing.open(`${world().url}#token=trp_wrong`);
  await page.getByRole('alert').getByText('The token was refused').waitFor();
  const writer = await openWith('writes only');
  await writer.getByRole('heading', { name: 'This key may not read' }).waitFor();
  await writer.getByRole('alert').getByText('scope "read"').waitFor();
});

pageTest('what a key may not do is not offered', async () => {
  const page = await openWith('reader', 'c/bill-0?agent=billing');
  await page.getByText('Incorrect API key').first().waitFor();
  await page.getByPlaceholder('Your key may not write').waitFor();
  await eventually(() =>
    page.getByRole('button', { name: /^(Retry|Pause|Retire|Run again|New conv)/ }).count(),
  ).toBe(0);
  const operator = await openWith('everything', 'c/bill-0?agent=billing');
  await operator.getByRole('button', { name: 'Retry' }).first().waitFor();
});

pageTest(
  'what waits for people says when it expires, at home and in its conversation, the first one first',
  async () => {
    const page = await openWith('everything');
    const asks = page.getByRole('region', { name: 'Needs you' });
    await asks.locator('.due').first().waitFor();
    const all = await asks.locator('.due').all();
    const dues = await Promise.all(all.map((due) => due.getAttribute('datetime')));
    expect(dues).toEqual(dues.toSorted((a, b) => String(a).localeCompare(String(b))));
    const open = await openWith('everything', 'c/refund-0?agent=refunds');
    await open
      .getByRole('region', { name: 'Waiting for you' })
      .getByText(/expires in \d+ h/)
      .waitFor();
    await open
      .getByRole('region', { name: 'Facts' })
      .getByText(/expires in/)
      .waitFor();
  },
);

pageTest(
  'what is broken is grouped by its cause, and all of a cause are retried after a question',
  async () => {
    const page = await openWith('everything');
    const failed = page.getByRole('region', { name: 'Failed' });
    await failed.getByRole('button', { name: /7 × provider_auth of @billing/ }).waitFor();
    await eventually(() => failed.getByRole('listitem').count()).toBeLessThan(6);
    const group = failed.locator('.cause').filter({ hasText: '@research' });
    await failed.getByText(/× provider_model_unknown of @translator/).waitFor();
    await failed
      .locator('.cause')
      .filter({ hasText: '@billing' })
      .getByRole('button', { name: 'Retry all…' })
      .click();
    await failed.getByRole('button', { name: 'Retry 7' }).click();
    await failed.getByText('Done.', { exact: true }).waitFor();
    for (const n of [0, 6, 12]) {
      const { events } = await world().troupe.events(`bill-${n}`);
      expect(
        events.some(
          ({ kind, body }) =>
            kind === 'command' && /^(retry|resume)$/.test((body as { command: string }).command),
        ),
      ).toBe(true);
    }
    expect(await group.count()).toBe(0);
  },
);

pageTest('approvals stand once, and those of one tool are denied together by whoever may', async () => {
  const page = await openWith('ben');
  await page.getByRole('region', { name: 'Needs you' }).waitFor();
  expect(
    await page.getByRole('region', { name: 'Stuck now' }).getByText('waits for a decision').count(),
  ).toBe(0);
  const refunds = page.locator('.cause').filter({ hasText: 'wants to run refund' });
  await refunds.getByRole('button', { name: /8 × @refunds/ }).click();
  await refunds.getByText('"euros"').first().waitFor();
  await refunds.getByRole('button', { name: 'Deny all…' }).click();
  await refunds.getByRole('button', { name: 'Deny 8' }).click();
  await eventually(() => page.locator('.cause').filter({ hasText: 'wants to run refund' }).count()).toBe(0);
  const reader = await openWith('reader');
  await reader.getByRole('region', { name: 'Failed' }).waitFor();
  expect(await reader.getByRole('button', { name: /all…$/ }).count()).toBe(0);
});

pageTest(
  'a conversation says what it is stuck at: who waits for whom, down to the silent model',
  async () => {
    const page = await openWith('everything', 'c/stamp');
    const stuck = page.getByRole('region', { name: 'Stuck here' });
    await eventually(() => stuck.innerText()).toMatch(
      /@front waits for @billing waits for @customs no word from the model for \d+ min/,
    );
    await stuck.getByRole('link', { name: '@customs' }).click();
    await eventually(() => new URL(page.url()).pathname).toMatch(/c\/stamp\./);
    await page.getByRole('region', { name: 'Stuck here' }).getByRole('button', { name: 'Abort' }).waitFor();
  },
);

pageTest('which agent cost most, and why, is two clicks away', async () => {
  const page = await openWith('everything');
  await page.getByRole('link', { name: 'Costs' }).click();
  await page.getByLabel('Period').selectOption('month');
  const agents = page.getByRole('table').filter({ has: page.getByRole('columnheader', { name: 'Agent' }) });
  await agents.getByRole('rowheader', { name: 'archivist' }).waitFor();
  expect(await agents.getByRole('rowheader').first().innerText()).toBe('archivist');
  await page
    .getByText('Budget of')
    .or(page.getByRole('progressbar', { name: 'Budget of tenant' }))
    .first()
    .waitFor();
  const headers = { authorization: `Bearer ${world().keys['everything']}` };
  const response = await fetch(`${world().url}api/costs?from=0`, { headers });
  const { total } = (await response.json()) as { total: { usd: number } };
  const { conversations } = await world().troupe.listConversations({ kind: 'conversation', limit: 500 });
  const costs = await Promise.all(conversations.map(({ id }) => world().troupe.cost(id)));
  expect(total.usd).toBeCloseTo(
    costs.reduce((sum, cost) => sum + (cost.total.usd ?? 0), 0),
    6,
  );
  expect(new URL(page.url()).pathname).toBe('/costs');
  await page.reload();
  await page.getByRole('heading', { name: 'Costs' }).waitFor();
  await agents.getByRole('link', { name: 'archivist' }).click();
  await page.getByRole('region', { name: 'Found' }).getByText('archive').first().waitFor();
});

pageTest(
  'what is typed into a filter or the search stays as it is typed, and is in the address',
  async () => {
    const page = await openWith('everything');
    const filter = page.getByRole('searchbox', { name: 'Id or words of the first message' });
    await filter.pressSequentially('letter to the harbour ');
    expect(await filter.inputValue()).toBe('letter to the harbour ');
    await page.getByRole('button', { name: 'Clear' }).click();
    const search = page.getByRole('searchbox', { name: 'Search all conversations' });
    await search.pressSequentially('crane weigh');
    await page.getByText(/hits? in/).waitFor();
    await page.reload();
    await page.getByText(/hits? in/).waitFor();
    expect(await search.inputValue()).toBe('crane weigh');
  },
);

pageTest('whoever acts goes on to see the same agent', async () => {
  const page = await openWith('everything', 'c/contract-1');
  const detail = page.getByRole('region', { name: 'Detail', exact: true });
  await detail
    .getByRole('button', { name: 'Pause' })
    .or(detail.getByRole('button', { name: 'Retire' }))
    .first()
    .waitFor();
  await detail
    .getByRole('button', { name: /^(Pause|Retry)$/ })
    .first()
    .click();
  await eventually(() => page.url()).toContain('agent=translator');
});
