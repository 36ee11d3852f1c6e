/**
 * Words of correction and permission by language, as data. Each list is the inside of an alternation that must stand alone, or
 * that matches anywhere in a language without spaces between words. A longer phrase stands before a shorter one that it contains.
 */
export interface CorrectionWords {
  /** Begin a sentence that takes something back, before a comma or a dash: `no`. */
  no?: string;
  /** Announce a change: `actually`, `I meant`, `now`. */
  changes: string;
  /** Permit: `you may`, `is fine`, `I don't mind`. */
  allows: string;
  /** Precede a value that no longer holds: `not`, `instead of`. */
  before?: string;
  /** Follow a value that no longer holds, where a language puts it so: `yerine`. */
  after?: string;
  /** Around the value that is preferred: `rather 9090 than 8080`. */
  rather?: readonly [preferred: string, than: string];
  /** Forbid or negate: `not`, `under no circumstances`. */
  denies: string;
  /** Limits with a negation, which forbid no matter: `no more than`. */
  limits?: string;
  /** Begin a condition of a ban: `without`, `unless`. */
  unless: string;
  /** Verbs by which a matter in general is permitted: `English is fine`. */
  is?: string;
  /** Verbs by which several things are permitted: `the logs are fine`. */
  are?: string;
  /** Phrases that say nothing about the matter: `on reflection`, `whenever you like`. */
  asides?: string;
  /** Words of three letters and more that occur in many demands and do not say what one is about, between spaces. */
  common?: string;
  /** The language is written without spaces, or joins such words to others. */
  unspaced?: true;
}

export const CORRECTION_WORDS: Readonly<Record<string, CorrectionWords>> = {
  en: {
    no: 'no|nope|nah',
    changes:
      "actually|sorry|apologies|pardon|my mistake|correction|correct(?:ing)? (?:that|myself)|i meant|i mean|make (?:that|it)|change (?:that|it|the)|let(?:['’]s| us) say|instead(?: of)?|rather than|after all|scratch that|from now on|now|again|any ?more|no longer|meanwhile|updated?",
    allows:
      "(?:is|are|would be|it['’]s|['’]s) (?:now |also |perfectly |totally |all )?(?:fine|ok|okay|allowed|permitted|possible|alright|right|acceptable|welcome|good)(?: (?:now|again|too|as well|with me|by me|for me))?|you (?:may|can|could|are allowed to|are free to|have my permission to)(?! (?:not|only))|we (?:may|can|are allowed to|are free to)(?! (?:not|only))|(?:may|can) be|feel free to|go ahead and|(?:is|are) no longer (?:forbidden|prohibited|banned|off limits)|no need to avoid|(?:i|we) (?:don['’]t|do not|no longer) (?:mind|object)(?: if)?|i have nothing against|(?:does not|doesn['’]t|no longer) (?:apply|applies|hold|holds|matter|need)|lift(?:ed)?|drop (?:the )?(?:rule|ban|limit|requirement)|ignore (?:the|what|my)|forget (?:the rule|the limit|what)|is gone|off the table",
    before: 'not|instead of|rather than|better than',
    rather: ['rather|better|sooner|prefer', 'than|to'],
    denies:
      "under no circumstances?|by no means|not|never|no|nobody|nothing|without|avoid|stop|n['’]t|\\p{L}+n['’]t|forbidden|cannot",
    limits: '(?:no|not|never) (?:more|less|fewer|longer|later|earlier) than',
    unless: 'without|unless|until|before|except',
    is: 'is',
    are: 'are',
    asides:
      "on (?:second thoughts?|reflection)|thinking about it|come to think of it|whenever you (?:like|want)|(?:if|when) you (?:like|want|wish)|as far as i(?:[’']m| am) concerned|at any time",
    common:
      'please need needs want that this these those with from into about there here what when which then than have has been being will would could can may them they your yours mine our ours the and but for are you too also just only always never must should shall use used using any all some said rule limit okay well fine',
  },
  de: {
    no: 'nein|nee|nö',
    changes:
      'doch|eigentlich|sondern|stattdessen|statt|anstatt|korrektur|ich meinte?|jetzt|wieder|nicht mehr|ab (?:jetzt|sofort)|nun|entschuldig\\p{L}*|verzeihung|tut mir leid|mittlerweile|inzwischen',
    allows:
      '(?:ist|sind|wäre|geht) (?:jetzt |auch |doch |nun |mittlerweile |wieder )?(?:in ordnung|ok|okay|erlaubt|gut|möglich|gestattet)|(?:du|ihr|sie|wir) (?:darfst|dürft|dürfen|kannst|könnt|können)|(?:darfst|kannst|dürft|könnt) (?:du|ihr)|(?:darf|dürfen|kann|können)(?! nicht)|gilt nicht mehr|entfällt|nicht (?:mehr|länger) (?:verboten|untersagt)|von mir aus|meinetwegen|ich habe nichts (?:mehr )?dagegen|(?:es )?stört mich nicht(?: mehr)?|ruhig',
    before: 'nicht|(?:an)?statt',
    rather: ['lieber|eher|besser', 'als'],
    denies:
      'auf keinen fall|keinesfalls|unter keinen umständen|nicht|nie|niemals|kein\\p{L}*|verboten|untersagt|ohne',
    limits: '(?:nicht|nie|niemals) (?:mehr|weniger|später|länger|früher) als|nicht (?:über|unter)',
    unless: 'ohne|bevor|bis|außer',
    is: 'ist',
    are: 'sind',
    asides:
      'wenn (?:du|ihr|sie) (?:willst|wollt|wollen|magst|mögt|möchten)|bei näherer betrachtung|jederzeit|genau genommen',
    common:
      'bitte eine einen einem einer eines und oder auch der die das den dem des mit für auf ist sind darf dürfen soll sollen sollst muss müssen musst nur immer niemals wird werden wurde man mir mich dich dir ihr sie gern gerne dass nimm höchstens mindestens',
  },
  fr: {
    no: 'non',
    changes:
      'finalement|en fait|plutôt|au lieu d[eu]|pardon|désolée?|excuse[zs]?(?:[- ]moi)?|je voulais dire|maintenant|désormais|de nouveau|à nouveau|ne plus|rectification|correction|dorénavant',
    allows:
      "(?:est|sont) (?:maintenant |aussi |de nouveau |à nouveau )?(?:permise?s?|autorisée?s?|possible|bon|acceptable|d['’]accord|ok)|(?:tu peux|vous pouvez|on peut|nous pouvons)|peu(?:t|vent) (?:maintenant )?être|ça (?:me )?(?:va|convient)|me va|ne s['’]applique plus|convient|n['’](?:est|sont) plus interdite?s?|(?:ça|cela) ne me (?:dérange|gêne) (?:pas|plus)|je n['’]ai rien contre|je ne m['’](?:y )?oppose (?:pas|plus)|libre à (?:toi|vous) de|n['’]hésite[zs]? pas à",
    before: 'pas|au lieu d[eu]',
    rather: ['plutôt|mieux vaut|mieux', 'que'],
    denies: 'en aucun cas|sous aucun prétexte|pas|jamais|interdit\\p{L}*|défendu|ne|aucune?|sans',
    limits: 'pas (?:plus|moins) d[eu]',
    unless: 'sans|avant|sauf|tant que|à moins',
    is: 'est',
    are: 'sont',
    asides:
      "réflexion faite|à la réflexion|tout bien réfléchi|quand (?:tu veux|vous voulez)|si (?:tu veux|vous voulez)|en ce qui me concerne|s['’]il (?:te|vous) plaît",
    common:
      'les des une dans pour avec est sont vous sur que qui tu nous notre votre doit doivent utilise utilisez utiliser toujours uniquement seulement être maximum minimum',
  },
  es: {
    no: 'no',
    changes:
      'en realidad|mejor dicho|mejor|perdón|perdona|perdone|disculp[ae]|lo siento|corrección|quise decir|quería decir|ahora|en (?:vez|lugar) de|ya no|ya|otra vez|de nuevo|sino|al final',
    allows:
      '(?:está|están|es|son) (?:bien|permitid[oa]s?|autorizad[oa]s?|ok|posible)|(?:puedes|pueden|podéis|podemos|puede|se puede|se pueden)|ya no (?:aplica|vale)|ya no (?:está|están|es|son) prohibid[oa]s?|vale|me parece bien|no me (?:importa|molesta)(?: que)?|no tengo nada en contra(?: de que)?|por mí|eres libre de|te doy permiso',
    before: 'no(?=\\s+\\S*\\p{N})|en (?:vez|lugar) del?',
    rather: ['mejor|antes|prefiero', 'que|a'],
    denies:
      'en ningún caso|bajo ningun[ao] \\p{L}+|bajo ningún \\p{L}+|no|nunca|jamás|prohibid[oa]s?|ningun[ao]|ningún|sin',
    limits: 'no más de|no menos de',
    unless: 'sin|antes|hasta|salvo|excepto|a menos',
    is: 'está|es',
    are: 'están|son',
    asides: 'pensándolo (?:bien|mejor)|cuando (?:quieras|quiera|quieran)|si (?:quieres|quiere)|por favor',
    common:
      'los las una uno para con por está están del que solo sólo siempre nunca usa use usar usen hay debe deben máximo mínimo como pero',
  },
  pt: {
    no: 'não',
    changes:
      'na verdade|melhor|desculp[ae]|perdão|correção|quis dizer|queria dizer|agora|em vez d[eoa]s?|já não|já|de novo|novamente|mas sim|afinal',
    allows:
      '(?:está|estão|é|são) (?:bem|bom|permitid[oa]s?|ok|liberad[oa]s?|autorizad[oa]s?)|(?:você |vocês )?(?:pode|podem|podes|podemos)|já não vale|já não (?:é|está) proibid[oa]|não (?:é|está) mais proibid[oa]|tudo bem|por mim|não me (?:importo|importa|incomoda)(?: que)?|não tenho nada contra|fique à vontade para',
    before: 'não(?!\\s*,)|em vez d[eoa]s?',
    rather: ['melhor|antes|prefiro', '(?:do )?que|a'],
    denies:
      'em (?:nenhum caso|hipótese alguma|circunstância alguma)|não|nunca|jamais|proibid[oa]s?|nenhum[oa]?|sem',
    limits: 'no (?:máximo|mínimo)|não mais (?:de|do que|que)|não menos (?:de|do que|que)',
    unless: 'sem|antes|até|salvo|exceto|a menos',
    is: 'está|é',
    are: 'estão|são',
    asides: 'pensando (?:bem|melhor)|quando quiser(?:es|em)?|se quiser(?:es)?|por favor',
    common:
      'uma uns para com por são dos das que sempre apenas somente nunca use usar deve devem máximo mínimo mas você vocês',
  },
  it: {
    no: 'no',
    changes:
      "in realtà|anzi|meglio|scusa(?:te|mi)?|mi dispiace|correzione|intendevo|volevo dire|adesso|ora|invece(?: d[ei]\\p{L}*)?|non più|di nuovo|bensì|alla fine|d[’']ora in poi",
    allows:
      '(?:va|vanno) bene|(?:è|sono) (?:di nuovo |ora |adesso )?(?:permess[oaie]|consentit[oaie]|autorizzat[oaie]|ok)|(?:puoi|potete|può|possono|si può|si possono|possiamo)|non vale più|non (?:è|sono) più (?:vietat|proibit)[oaie]|per me|non mi (?:dispiace|disturba)|non ho nulla in contrario|non ho niente in contrario|sei liber[oa] di',
    before: 'non(?!\\s*,)|invece (?:di|del|della)|anziché',
    rather: ['meglio|piuttosto|preferisco', 'che|a|di'],
    denies: 'in nessun caso|per nessun motivo|non|mai|vietat[oaie]|proibit[oaie]|nessun[oa]?|senza',
    limits: 'non (?:più|meno) di',
    unless: 'senza|prima|finché|salvo|tranne|a meno',
    is: 'è|va',
    are: 'sono|vanno',
    asides: 'ripensandoci|a pensarci bene|quando vuoi|se vuoi|quando volete|per favore|per cortesia',
    common:
      'una uno dei del della delle degli sono per con che sempre solo soltanto usa usare usate deve devono massimo minimo gli nel nella alla',
  },
  ru: {
    no: 'нет',
    changes:
      'на самом деле|лучше|вместо|извини(?:те)?|прости(?:те)?|точнее|вернее|теперь|снова|опять|больше не|всё-таки|все-таки|поправка|а не|уже|отныне',
    allows:
      'можно|можешь|можете|можем|может быть|разреш\\p{L}*|допуст\\p{L}*|подойд[её]т|подходит|больше не (?:действует|нужно|запрещ\\p{L}*)|(?:я |мы )?не против|не возража\\p{L}*|пусть|ничего страшного',
    before: 'не|вместо',
    rather: ['лучше|скорее', 'чем|нежели'],
    denies:
      'ни в коем случае|ни при каких (?:условиях|обстоятельствах)|не|никогда|нельзя|запре[тщ]\\p{L}*|без|никаких|никому',
    limits: 'не (?:более|менее|больше|меньше|позднее|позже|раньше)(?: чем)?',
    unless: 'без|пока|кроме|до тех пор',
    is: String.raw`можно(?!\s[^,.;]{0,40}(?:ть|ти|чь)(?!\p{L}))`,
    asides: 'если (?:хочешь|хотите)|когда (?:хочешь|хотите|угодно)|подумав|пожалуйста|с моей стороны',
    common:
      'это для как что его она они мне нам вам только всегда надо нужно должен должна должны используй используйте',
  },
  nl: {
    no: 'nee',
    changes:
      'eigenlijk|toch|in plaats van|nu|sorry|pardon|ik bedoel(?:de)?|correctie|vanaf nu|weer|niet meer|inmiddels|voortaan',
    allows:
      '(?:mag|mogen|kan|kunnen)(?! niet)|(?:is|zijn) (?:nu |ook |weer |toch )?(?:prima|goed|oké|ok|toegestaan|mogelijk)|geldt niet meer|vervalt|niet (?:meer|langer) verboten|van mij|ik heb er niets op tegen|ik vind het (?:prima|goed)|gerust',
    before: 'niet|in plaats van',
    rather: ['liever|eerder|beter', 'dan'],
    denies:
      'in geen geval|onder geen (?:beding|enkele omstandigheid)|niet|geen|nooit|verboten|zonder|niets|niemand',
    limits: 'niet (?:meer|minder|later|langer) dan',
    unless: 'zonder|voordat|tenzij|tot|behalve',
    is: 'is',
    are: 'zijn',
    asides: 'bij nader inzien|wanneer je wilt|als je wilt|alsjeblieft|alstublieft|wat mij betreft',
    common:
      'een het die dat met voor van naar ook worden wordt moet moeten gebruik alleen altijd hoogstens minstens jullie',
  },
  pl: {
    no: 'nie',
    changes:
      'właściwie|jednak|zamiast|teraz|przepraszam|wybacz(?:cie)?|poprawka|miał[ae]m na myśli|już|znowu|ponownie|od teraz|a nie',
    allows:
      'wolno|można|możesz|możecie|możemy|może być|(?:jest|są) (?:w porządku|dozwolon\\p{L}*|ok)|dozwolon\\p{L}*|nie mam nic przeciwko|nie przeszkadza mi|już nie obowiązuje|już nie (?:jest|są) zabronion\\p{L}*|śmiało',
    before: 'nie|zamiast',
    rather: ['raczej|lepiej|wolę', 'niż|od'],
    denies:
      'pod żadnym pozorem|w żadnym (?:wypadku|razie)|nie wolno|nie można|nie|nigdy|zabronion\\p{L}*|zakazan\\p{L}*|bez|żaden|żadn\\p{L}+',
    limits: 'nie (?:więcej|mniej|później|dłużej) niż',
    unless: 'bez|zanim|dopóki|chyba|oprócz',
    is: String.raw`jest|(?:można|wolno)(?!\s[^,.;]{0,40}ć(?!\p{L}))`,
    are: 'są',
    asides: 'po namyśle|kiedy (?:chcesz|chcecie)|jeśli (?:chcesz|chcecie)|proszę',
    common: 'dla jest żeby tylko zawsze musi muszą należy trzeba co najwyżej maksymalnie minimum',
  },
  sv: {
    no: 'nej',
    changes:
      'egentligen|i stället(?: för)?|istället(?: för)?|nu|förlåt|ursäkta|jag menade|rättelse|igen|inte längre|från och med nu|numera',
    allows:
      '(?:får|kan)(?! inte)|(?:är|går) (?:nu |också |helt )?(?:bra|okej|ok|tillåtet|tillåtna|tillåten)|gäller inte längre|jag har inget emot|det gör inget(?: om)?|gärna|går bra',
    before: 'inte|i stället för|istället för',
    rather: ['hellre|snarare|bättre', 'än'],
    denies: 'under inga omständigheter|inte|aldrig|förbjud\\p{L}*|ingen|inget|inga|utan|undvik',
    limits: 'inte (?:mer|fler|mindre|senare) än',
    unless: 'utan|innan|om inte|utom|tills',
    is: 'är|går',
    asides: 'när du vill|om du vill|vid närmare eftertanke|tack|snälla',
    common: 'att och det den för med till från som ska måste bara alltid högst minst eller också dig du ni',
  },
  uk: {
    no: 'ні',
    changes:
      'насправді|краще|замість|вибач(?:те)?|пробач(?:те)?|точніше|тепер|знову|більше не|все-таки|поправка|а не|вже|відтепер',
    allows:
      'можна|можеш|можете|можемо|дозвол\\p{L}*|підійде|підходить|(?:я |ми )?не проти|не заперечу\\p{L}*|нехай',
    before: 'не|замість',
    rather: ['краще|радше|скоріше', 'ніж|аніж'],
    denies: 'у жодному разі|ні в якому разі|не можна|не|ніколи|заборонен\\p{L}*|заборона|без',
    limits: 'не (?:більше|менше|пізніше|раніше)(?: ніж)?',
    unless: 'без|поки|доки|крім',
    is: String.raw`можна(?!\s[^,.;]{0,40}(?:ти|ть)(?!\p{L}))`,
    asides: 'якщо (?:хочеш|хочете)|коли (?:хочеш|хочете)|будь ласка',
    common: 'для або щоб тільки лише завжди треба потрібно використовуй',
  },
  tr: {
    no: 'hayır|yok',
    changes:
      'aslında|yerine|artık|pardon|özür dilerim|kusura bakma|düzeltme|demek istedim|şimdi|yeniden|tekrar|bundan sonra|olsun',
    allows:
      '\\p{L}+(?:abilir|ebilir)(?:sin|siniz|iz|im|ler|lar)?|olabilir|olur|serbest|izin (?:var|verildi|veriyorum)|sorun (?:değil|yok)|sakıncası yok|mümkün',
    before: 'değil',
    after: 'yerine|değil',
    rather: ['en iyisi|daha iyi', 'ise'],
    denies:
      'hiçbir (?:koşulda|şekilde|zaman)|değil|asla|yasak|sakın|\\p{L}+(?:mayın|meyin|mayınız|meyiniz|mamalı|memeli)|hiçbir|olmadan',
    limits: '(?:dan|den|tan|ten) fazla değil',
    unless: 'olmadan|önce|kadar|hariç|dışında|sürece',
    is: 'olabilir|olur|serbest',
    asides: 'lütfen|istersen|ne zaman istersen|bence',
    common: 'için ile bir ama her zaman sadece yalnızca fazla kullan kullanın',
  },
  vi: {
    no: 'không',
    changes: 'thay vì|bây giờ|xin lỗi|ý tôi là|thực ra|đính chính|từ nay|lại',
    allows: '(?:bạn )?(?:có thể|được phép|cứ)(?! không)|được rồi|cũng được|không sao|ổn|tôi không phản đối',
    before: 'không phải|thay vì|chứ không phải',
    rather: ['tốt hơn|thà', 'hơn|còn hơn'],
    denies: 'không bao giờ|không được|đừng|cấm|tuyệt đối không|nghiêm cấm|không',
    limits: 'không quá|không hơn',
    unless: 'nếu không|trước khi|trừ khi|cho đến',
    asides: 'làm ơn|vui lòng|nếu muốn',
    common: 'cho của các những một với tối đa tối thiểu chỉ luôn phải dùng',
  },
  ar: {
    no: 'لا',
    changes: 'بدلا من|بدلاً من|بدلا|الآن|الان|عذرا|عذرًا|آسف|أقصد|قصدت|تصحيح|في الواقع|من جديد|بعد الآن',
    allows: 'يمكنك|يمكنكم|يمكن|لا بأس|لا مانع(?: عندي)?|مسموح|يسمح|يجوز|بإمكانك|تستطيع|أسمح|لا يزعجني',
    before: 'وليس|ليس|بدلا من|بدلاً من|لا(?=\\s+\\S*\\p{N})',
    denies: 'لا يجوز|لا يمكن|بأي حال|ممنوع|يمنع|لا|ليس|أبدا|أبدًا|عدم|بدون|دون',
    limits: 'لا (?:يزيد|تزيد) عن|ليس أكثر من',
    unless: 'بدون|دون|إلا|قبل|حتى',
    asides: 'من فضلك|لو سمحت|متى شئت|إذا أردت',
    common: 'من في على إلى عن مع هذا هذه كحد أقصى يجب فقط دائما استخدم',
  },
  he: {
    no: 'לא',
    changes: 'במקום|עכשיו|בעצם|סליחה|התכוונתי|תיקון|מעכשיו|שוב|כבר',
    allows: 'מותר|בסדר|אפשר|יכול|יכולה|יכולים|אתה רשאי|אין בעיה|אין לי התנגדות|לא אכפת לי',
    before: 'לא|במקום',
    denies: 'בשום אופן|אסור|לעולם|אל|לא|אין|בלי|ללא|אף פעם',
    limits: 'לא יותר מ',
    unless: 'בלי|ללא|לפני|עד|אלא|חוץ',
    asides: 'בבקשה|מתי שתרצה|אם תרצה',
    common: 'את של על עם זה לכל היותר רק תמיד חייב צריך',
  },
  hi: {
    changes: 'अब|बजाय|माफ़ कीजिए|माफ़ करना|माफ करना|मेरा मतलब|दरअसल|असल में|फिर से',
    allows: 'ठीक है|(?:सकते|सकती|सकता) (?:हैं|है|हो)|सकते|अनुमति है|कोई बात नहीं|मुझे आपत्ति नहीं',
    before: 'नहीं',
    after: 'के बजाय|की बजाय|की जगह|के स्थान पर',
    denies: 'मत|नहीं|मना है|कभी भी|कभी|न करें|वर्जित',
    unless: 'बिना|पहले|जब तक',
    common: 'के का की को से में और या है हैं लिए करें करना अधिकतम कम केवल',
    unspaced: true,
  },
  ko: {
    changes: '변경|아니라|아니요|대신|이제|정정|죄송|미안|제 말은|다시|앞으로',
    allows:
      '괜찮(?:습니다|아요)?|해도 ?(?:됩니다|돼요|돼|좋습니다)|[가-힣]?도 ?(?:됩니다|돼요|괜찮(?:습니다|아요)?|좋습니다)|(?:할 )?수 있(?:습니다|어요)|사용 가능|허용(?:됩니다|합니다)?|상관없(?:습니다|어요)',
    before: '아니라',
    after: '아니라|이 아니라|가 아니라|대신|말고|보다(?=\\s?[\\p{N}A-Za-z])',
    denies:
      '지 ?마세요|지 ?마십시오|지 ?말(?:고|아|것)|마세요|금지(?:입니다|합니다)?|안 ?됩니다|안 ?돼(?:요)?|절대로?',
    unless: '없이|전에|까지|제외',
    is: '(?<![해아어여려와줘써봐돼])도 ?(?:괜찮|됩니다)',
    common:
      '에게 에서 으로 까지 부터 에는 은 는 이 가 을 를 입니다 합니다 하세요 하십시오 주세요 최대 최소 해 로 만 반드시 항상 사용',
    unspaced: true,
  },
  zh: {
    changes:
      '^不(?![要得能可准许許用])|^别|不是|而是|改成|改为|改為|改用|换成|換成|代替|取代|现在|現在|其实|其實|更正|还是|還是|抱歉|对不起|對不起|不好意思|从现在起|從現在起|今后|今後',
    allows:
      '也?(?:可以|没问题|沒問題|没关系|沒關係|行)(?:了|的)?|允许|允許|准许|不用再|不再禁止|不反对|不反對|不介意|无妨|無妨|随便|尽管|儘管',
    before: '不是|不用|别用|而不是|代替|取代|不要用',
    denies: '不要|不得|不能|不可|不准|不许|不許|禁止|严禁|嚴禁|绝不|絕不|别|請勿|请勿|勿|从不|從不',
    limits: '不超过|不超過|不多于|不多於|不少于|不少於',
    unless: '除非|之前|没有|沒有',
    is: '也(?:可以|行)',
    asides: '麻烦|麻煩|请|請|吧|了|的话|我想',
    unspaced: true,
  },
  ja: {
    changes:
      '^いや|^いいえ|ではなく|じゃなく|やっぱり|やはり|訂正|今は|もう|代わり|すみません|ごめん|失礼|正しくは|今後は|これからは|より(?=\\s?[\\p{N}A-Za-z])',
    allows:
      '(?:ても|でも|で)?(?<!ほうが|方が)(?:いい|大丈夫|よい|良い|かまいません|構いません|問題ありません|結構)(?:です|よ)*|禁止では(?:ない|ありません)|許可(?:します)?|可能です|できます|差し支えありません',
    after: 'ではなく|じゃなくて?|の代わり|をやめて|より(?=\\s?[\\p{N}A-Za-z])',
    denies: '禁止|不可|厳禁|ない|禁|てはいけ|てはなら|やめて',
    limits: '以内|以下',
    unless: 'なしに|前に|限り|まで',
    is: '(?<![んい])でも(?:いい|大丈夫|構いません)',
    asides: '絶対|必ず|決して|今|最大',
    unspaced: true,
  },
};
