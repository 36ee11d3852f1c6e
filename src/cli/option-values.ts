import { InvalidArgumentError } from 'commander';

/** Collects the values of an option that may be repeated. */
export function repeated(file: string, files: string[] = []): string[] {
  return [...files, file];
}

export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return function parseWholeNumber(text) {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}
