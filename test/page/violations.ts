import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
interface AxeRule {
  id: string;
  nodes: { target: string[]; failureSummary: string }[];
}

/** The violations that axe finds, each with its first place. */
export async function violations(page: Page, rules: 'all' | 'color-contrast' = 'all'): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE);
  const run = async (selectors: boolean) => {
    const options = { selectors, resultTypes: ['violations'], ...(rules !== 'all' && { runOnly: [rules] }) };
    const result = await page.evaluate<{ violations: AxeRule[] }>(
      `axe.run(document, ${JSON.stringify(options)})`,
    );
    return result.violations;
  };
  // To name every place takes a fifth of the time, and only what is wrong needs its name.
  const found = (await run(false)).length === 0 ? [] : await run(true);
  return found.flatMap(({ id, nodes }) =>
    nodes
      .slice(0, 3)
      .map(
        ({ target, failureSummary }) =>
          `${id}: ${target.join(' ')}: ${failureSummary.split('\n')[1]?.trim()}`,
      ),
  );
}
