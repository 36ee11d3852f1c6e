/** One line of the table. */
export interface Figure {
  name: string;
  value: number;
  unit: Unit;
  goal?: Goal;
}

export type Unit = 'share' | 'ratio' | 'recall' | 'ms' | 'tokens' | 'bytes' | 'count';

export interface Goal {
  must: 'at least' | 'above' | 'at most' | 'below';
  value: number;
}

/** The result of a section. A violation is a broken invariant, which fails the run whatever the figures say. */
export interface Scored {
  figures: Figure[];
  violations: string[];
  /** Why the section, or a part of it, was skipped. */
  skipped?: string;
}

export const atLeast = (value: number): Goal => ({ must: 'at least', value });
export const above = (value: number): Goal => ({ must: 'above', value });
export const atMost = (value: number): Goal => ({ must: 'at most', value });
export const below = (value: number): Goal => ({ must: 'below', value });

export function figure(name: string, value: number, unit: Unit, goal?: Goal): Figure {
  return { name, value, unit, ...(goal && { goal }) };
}

/** Null without a goal. A figure that could not be measured misses its goal. */
export function isMet({ value, goal }: Figure): boolean | null {
  if (!goal) return null;
  switch (goal.must) {
    case 'at least':
      return value >= goal.value;
    case 'above':
      return value > goal.value;
    case 'at most':
      return value <= goal.value;
    case 'below':
      return value < goal.value;
  }
}

const SIGNS = { 'at least': '>=', above: '>', 'at most': '<=', below: '<' } as const;

export function figureLine(one: Figure): string {
  const goal = one.goal ? `${SIGNS[one.goal.must]} ${shown(one.goal.value, one.unit)}` : '';
  const met = isMet(one);
  const verdict = met === null ? '' : met ? 'ok' : 'MISSED';
  return `  ${one.name.padEnd(74)} ${shown(one.value, one.unit).padStart(12)}  ${goal.padEnd(12)} ${verdict}`.trimEnd();
}

function shown(value: number, unit: Unit): string {
  switch (unit) {
    case 'share':
      return `${Number((value * 100).toFixed(2))} %`;
    case 'ratio':
      return `${Number(value.toFixed(3))} x`;
    case 'recall':
      return value.toFixed(3);
    case 'ms':
      return `${value < 10 ? Number(value.toFixed(3)) : Math.round(value)} ms`;
    case 'bytes':
      return `${Number((value / 1e6).toFixed(2))} MB`;
    case 'tokens':
    case 'count':
      return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
  }
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** Shares of what was kept, by name. */
export class Shares {
  readonly #all = new Map<string, { kept: number; of: number }>();

  add(name: string, isKept: boolean): void {
    const { kept, of } = this.#all.get(name) ?? { kept: 0, of: 0 };
    this.#all.set(name, { kept: kept + (isKept ? 1 : 0), of: of + 1 });
  }

  figures(goals: Readonly<Record<string, Goal>> = {}): Figure[] {
    return [...this.#all].map(([name, { kept, of }]) =>
      figure(`${name} (${of})`, kept / of, 'share', goals[name]),
    );
  }
}
