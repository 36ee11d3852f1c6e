import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { pageTest, useBrowser } from './browser.ts';
import { ANA, openStage } from './stage.ts';

const browsing = useBrowser();

pageTest(
  'the open work of an agent that is not defined is stuck, and its line says how it goes on',
  async () => {
    const data = mkdtempSync(path.join(tmpdir(), 'troupe-page-undefined-'));
    const asks = {
      when: { step: 1 },
      calls: [{ name: 'ask', args: { question: 'Which one?', to: 'people' } }],
    };
    const other = { provider: 'scripted' as const, script: { rules: [{ reply: 'Yes.' }] } };
    {
      const rules = [asks, { reply: 'Thanks.' }];
      const assessor = { id: 'assessor', provider: 'scripted' as const, tools: ['ask'], script: { rules } };
      await using troupe = await createTroupe({ agents: [assessor] }, { data });
      await troupe.send('claim-7', { author: ANA, to: ['assessor'], content: 'Assess it.' });
      await troupe.idle();
    }
    await using stage = await openStage(
      { company: () => ({ agents: [{ ...other, id: 'adjuster' }] }), lines: [] },
      { data },
    );
    const page = await browsing.open(stage.url);
    const line = page
      .getByRole('region', { name: 'Stuck now' })
      .getByRole('listitem')
      .filter({ hasText: 'assessor in “Assess it.”' });
    await line.filter({ hasText: 'has work but is not defined (1 question)' }).waitFor();
    await line.getByText("aliases: ['assessor']").waitFor();
  },
);
