/** Content codings that a header `accept-encoding` names and does not refuse, in lower case. */
export function acceptedEncodings(header: string): Set<string> {
  const wanted = header.split(',').map((part) => {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    return { name, isRefused: parameters.some((each) => /^q=0(?:\.0*)?$/.test(each)) };
  });
  return new Set(wanted.flatMap(({ name, isRefused }) => (isRefused ? [] : [name])));
}
