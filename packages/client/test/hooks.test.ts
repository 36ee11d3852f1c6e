import path from 'node:path';
import { expect } from 'vitest';
import { company, ROOM, UMA } from '../../../test/support/company.ts';
import { openBuiltWindow } from '../../../test/page/built-window.ts';
import { DESK } from '../../doors/test/stage.ts';
import { eventually, pageTest, useBrowser } from '../../../test/page/browser.ts';

const browsing = useBrowser();
const COLOUR = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
pageTest(
  'two pages show who says what as it is written, when, with data and files, and a refused key; who may decides, and an approval that one gives is gone in the other',
  async () => {
    await using stage = await company(['desk', 'billing', 'clerk'], {
      ...DESK,
      agents: { ...DESK.agents, clerk: { name: 'Clerk', reply: COLOUR } },
      answers: { ...DESK.answers, clerk: ['{"colour":"red"}'] },
    });
    await using room = await openBuiltWindow(path.join(import.meta.dirname, 'page'), stage.troupe, {
      authenticate: (key) => stage.troupe.authenticate(key),
    });
    const [one, other] = [await browsing.open(room.url), await browsing.open(room.url)];
    const shown = (page: typeof one) => () => page.locator('li').allInnerTexts();
    await one.getByLabel('Message').fill('Refund order 4.');
    await one.getByRole('button', { name: 'Send' }).click();
    const before = ['User: Refund order 4.', 'Desk: One moment.', 'Billing: I refund it.'];
    for (const page of [one, other]) {
      await page.getByRole('button', { name: 'Approve refund {"order":4}' }).waitFor();
      await eventually(shown(page)).toEqual(before);
      expect(await page.locator('output').innerText()).toBe('open');
    }
    browsing.expectErrors(/status of 401/);
    await other.getByLabel('Key').fill('wrong');
    const refusal = await other.getByRole('alert').innerText();
    expect(refusal).toMatch(/key|token/i);
    await eventually(() => other.locator('output').innerText()).toBe(refusal);
    expect(await shown(other)()).toEqual([]);
    expect(await other.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    const { secret } = await stage.troupe.keys.create({ name: 'reader', scopes: ['read'] });
    await other.getByLabel('Key').fill(secret);
    await other.getByRole('button', { name: 'Approve', disabled: true }).waitFor();
    await other.getByLabel('Key').fill('');
    await other.getByRole('button', { name: 'Approve', disabled: false }).waitFor();
    await eventually(() => other.locator('output').innerText()).toBe('open');
    expect(await other.getByRole('alert').count()).toBe(0);

    await one.getByRole('button', { name: 'Approve' }).click();
    await other.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' });
    for (const page of [one, other])
      await eventually(shown(page)).toEqual([...before, 'Billing: Your money is back.']);

    const files = [
      { name: 'note.txt', mediaType: 'text/plain', data: Buffer.from('A note.').toString('base64') },
    ];
    await stage.troupe.send(ROOM, { author: UMA, to: ['clerk'], content: '', attachments: files });
    await eventually(() => one.locator('li').count()).toBe(6);
    const details = await one
      .locator('li')
      .evaluateAll((items) => items.map((item) => JSON.parse(item.dataset['shown'] ?? '') as object));
    const { events } = await stage.troupe.events(ROOM);
    const [said, replied] = events
      .filter(({ kind }) => kind === 'message')
      .slice(-2)
      .map(({ seq, at, author }) => ({ seq, at, author }));
    const plain = { isNotice: false, isErased: false };
    expect(details.slice(-2)).toEqual([
      {
        ...said,
        ...plain,
        attachments: [{ type: 'text', name: 'note.txt', mediaType: 'text/plain', text: 'A note.' }],
      },
      { ...replied, ...plain, attachments: [], data: { colour: 'red' } },
    ]);

    await stage.troupe.send(ROOM, { author: UMA, content: 'Between us.', includeInContext: false });
    for (const page of [one, other]) {
      await eventually(() => page.locator('li').last().innerText()).toBe(`${UMA.name}: Between us.`);
      expect(JSON.parse((await page.locator('li').last().getAttribute('data-shown')) ?? '')).toMatchObject({
        isNotice: true,
      });
    }
    await stage.troupe.erase({ person: UMA.id });
    for (const page of [one, other])
      await eventually(() => page.locator('li').last().innerText()).toBe(`${UMA.id}: [erased]`);
    // Their streams end before the server does.
    await one.close();
    await other.close();
  },
);
