// A switch of 120 cases and a chain of 100 conditions, of which the first, one in the middle, the last and none is met.
@group(0) @binding(0) var<storage, read> given: array<u32>;
@group(0) @binding(1) var<storage, read_write> answer: array<u32>;

@compute @workgroup_size(8)
fn many_cases(@builtin(global_invocation_id) id: vec3u) {
    switch given[id.x] {
        case 1000u: { answer[id.x] = 0u; }
        case 1001u: { answer[id.x] = 1u; }
        case 1002u: { answer[id.x] = 2u; }
        case 1003u: { answer[id.x] = 3u; }
        case 1004u: { answer[id.x] = 4u; }
        case 1005u: { answer[id.x] = 5u; }
        case 1006u: { answer[id.x] = 6u; }
        case 1007u: { answer[id.x] = 7u; }
        case 1008u: { answer[id.x] = 8u; }
        case 1009u: { answer[id.x] = 9u; }
        case 1010u: { answer[id.x] = 10u; }
        case 1011u: { answer[id.x] = 11u; }
        case 1012u: { answer[id.x] = 12u; }
        case 1013u: { answer[id.x] = 13u; }
        case 1014u: { answer[id.x] = 14u; }
        case 1015u: { answer[id.x] = 15u; }
        case 1016u: { answer[id.x] = 16u; }
        case 1017u: { answer[id.x] = 17u; }
        case 1018u: { answer[id.x] = 18u; }
        case 1019u: { answer[id.x] = 19u; }
        case 1020u: { answer[id.x] = 20u; }
        case 1021u: { answer[id.x] = 21u; }
        case 1022u: { answer[id.x] = 22u; }
        case 1023u: { answer[id.x] = 23u; }
        case 1024u: { answer[id.x] = 24u; }
        case 1025u: { answer[id.x] = 25u; }
        case 1026u: { answer[id.x] = 26u; }
        case 1027u: { answer[id.x] = 27u; }
        case 1028u: { answer[id.x] = 28u; }
        case 1029u: { answer[id.x] = 29u; }
        case 1030u: { answer[id.x] = 30u; }
        case 1031u: { answer[id.x] = 31u; }
        case 1032u: { answer[id.x] = 32u; }
        case 1033u: { answer[id.x] = 33u; }
        case 1034u: { answer[id.x] = 34u; }
        case 1035u: { answer[id.x] = 35u; }
        case 1036u: { answer[id.x] = 36u; }
        case 1037u: { answer[id.x] = 37u; }
        case 1038u: { answer[id.x] = 38u; }
        case 1039u: { answer[id.x] = 39u; }
        case 1040u: { answer[id.x] = 40u; }
        case 1041u: { answer[id.x] = 41u; }
        case 1042u: { answer[id.x] = 42u; }
        case 1043u: { answer[id.x] = 43u; }
        case 1044u: { answer[id.x] = 44u; }
        case 1045u: { answer[id.x] = 45u; }
        case 1046u: { answer[id.x] = 46u; }
        case 1047u: { answer[id.x] = 47u; }
        case 1048u: { answer[id.x] = 48u; }
        case 1049u: { answer[id.x] = 49u; }
        case 1050u: { answer[id.x] = 50u; }
        case 1051u: { answer[id.x] = 51u; }
        case 1052u: { answer[id.x] = 52u; }
        case 1053u: { answer[id.x] = 53u; }
        case 1054u: { answer[id.x] = 54u; }
        case 1055u: { answer[id.x] = 55u; }
        case 1056u: { answer[id.x] = 56u; }
        case 1057u: { answer[id.x] = 57u; }
        case 1058u: { answer[id.x] = 58u; }
        case 1059u: { answer[id.x] = 59u; }
        case 1060u: { answer[id.x] = 60u; }
        case 1061u: { answer[id.x] = 61u; }
        case 1062u: { answer[id.x] = 62u; }
        case 1063u: { answer[id.x] = 63u; }
        case 1064u: { answer[id.x] = 64u; }
        case 1065u: { answer[id.x] = 65u; }
        case 1066u: { answer[id.x] = 66u; }
        case 1067u: { answer[id.x] = 67u; }
        case 1068u: { answer[id.x] = 68u; }
        case 1069u: { answer[id.x] = 69u; }
        case 1070u: { answer[id.x] = 70u; }
        case 1071u: { answer[id.x] = 71u; }
        case 1072u: { answer[id.x] = 72u; }
        case 1073u: { answer[id.x] = 73u; }
        case 1074u: { answer[id.x] = 74u; }
        case 1075u: { answer[id.x] = 75u; }
        case 1076u: { answer[id.x] = 76u; }
        case 1077u: { answer[id.x] = 77u; }
        case 1078u: { answer[id.x] = 78u; }
        case 1079u: { answer[id.x] = 79u; }
        case 1080u: { answer[id.x] = 80u; }
        case 1081u: { answer[id.x] = 81u; }
        case 1082u: { answer[id.x] = 82u; }
        case 1083u: { answer[id.x] = 83u; }
        case 1084u: { answer[id.x] = 84u; }
        case 1085u: { answer[id.x] = 85u; }
        case 1086u: { answer[id.x] = 86u; }
        case 1087u: { answer[id.x] = 87u; }
        case 1088u: { answer[id.x] = 88u; }
        case 1089u: { answer[id.x] = 89u; }
        case 1090u: { answer[id.x] = 90u; }
        case 1091u: { answer[id.x] = 91u; }
        case 1092u: { answer[id.x] = 92u; }
        case 1093u: { answer[id.x] = 93u; }
        case 1094u: { answer[id.x] = 94u; }
        case 1095u: { answer[id.x] = 95u; }
        case 1096u: { answer[id.x] = 96u; }
        case 1097u: { answer[id.x] = 97u; }
        case 1098u: { answer[id.x] = 98u; }
        case 1099u: { answer[id.x] = 99u; }
        case 1100u: { answer[id.x] = 100u; }
        case 1101u: { answer[id.x] = 101u; }
        case 1102u: { answer[id.x] = 102u; }
        case 1103u: { answer[id.x] = 103u; }
        case 1104u: { answer[id.x] = 104u; }
        case 1105u: { answer[id.x] = 105u; }
        case 1106u: { answer[id.x] = 106u; }
        case 1107u: { answer[id.x] = 107u; }
        case 1108u: { answer[id.x] = 108u; }
        case 1109u: { answer[id.x] = 109u; }
        case 1110u: { answer[id.x] = 110u; }
        case 1111u: { answer[id.x] = 111u; }
        case 1112u: { answer[id.x] = 112u; }
        case 1113u: { answer[id.x] = 113u; }
        case 1114u: { answer[id.x] = 114u; }
        case 1115u: { answer[id.x] = 115u; }
        case 1116u: { answer[id.x] = 116u; }
        case 1117u: { answer[id.x] = 117u; }
        case 1118u: { answer[id.x] = 118u; }
        case 1119u: { answer[id.x] = 119u; }
        default: { answer[id.x] = 777u; }
    }
    let word = given[id.x] + 1000u;
    if word == 2000u { answer[8u + id.x] = 0u; }
    else if word == 2001u { answer[8u + id.x] = 1u; }
    else if word == 2002u { answer[8u + id.x] = 2u; }
    else if word == 2003u { answer[8u + id.x] = 3u; }
    else if word == 2004u { answer[8u + id.x] = 4u; }
    else if word == 2005u { answer[8u + id.x] = 5u; }
    else if word == 2006u { answer[8u + id.x] = 6u; }
    else if word == 2007u { answer[8u + id.x] = 7u; }
    else if word == 2008u { answer[8u + id.x] = 8u; }
    else if word == 2009u { answer[8u + id.x] = 9u; }
    else if word == 2010u { answer[8u + id.x] = 10u; }
    else if word == 2011u { answer[8u + id.x] = 11u; }
    else if word == 2012u { answer[8u + id.x] = 12u; }
    else if word == 2013u { answer[8u + id.x] = 13u; }
    else if word == 2014u { answer[8u + id.x] = 14u; }
    else if word == 2015u { answer[8u + id.x] = 15u; }
    else if word == 2016u { answer[8u + id.x] = 16u; }
    else if word == 2017u { answer[8u + id.x] = 17u; }
    else if word == 2018u { answer[8u + id.x] = 18u; }
    else if word == 2019u { answer[8u + id.x] = 19u; }
    else if word == 2020u { answer[8u + id.x] = 20u; }
    else if word == 2021u { answer[8u + id.x] = 21u; }
    else if word == 2022u { answer[8u + id.x] = 22u; }
    else if word == 2023u { answer[8u + id.x] = 23u; }
    else if word == 2024u { answer[8u + id.x] = 24u; }
    else if word == 2025u { answer[8u + id.x] = 25u; }
    else if word == 2026u { answer[8u + id.x] = 26u; }
    else if word == 2027u { answer[8u + id.x] = 27u; }
    else if word == 2028u { answer[8u + id.x] = 28u; }
    else if word == 2029u { answer[8u + id.x] = 29u; }
    else if word == 2030u { answer[8u + id.x] = 30u; }
    else if word == 2031u { answer[8u + id.x] = 31u; }
    else if word == 2032u { answer[8u + id.x] = 32u; }
    else if word == 2033u { answer[8u + id.x] = 33u; }
    else if word == 2034u { answer[8u + id.x] = 34u; }
    else if word == 2035u { answer[8u + id.x] = 35u; }
    else if word == 2036u { answer[8u + id.x] = 36u; }
    else if word == 2037u { answer[8u + id.x] = 37u; }
    else if word == 2038u { answer[8u + id.x] = 38u; }
    else if word == 2039u { answer[8u + id.x] = 39u; }
    else if word == 2040u { answer[8u + id.x] = 40u; }
    else if word == 2041u { answer[8u + id.x] = 41u; }
    else if word == 2042u { answer[8u + id.x] = 42u; }
    else if word == 2043u { answer[8u + id.x] = 43u; }
    else if word == 2044u { answer[8u + id.x] = 44u; }
    else if word == 2045u { answer[8u + id.x] = 45u; }
    else if word == 2046u { answer[8u + id.x] = 46u; }
    else if word == 2047u { answer[8u + id.x] = 47u; }
    else if word == 2048u { answer[8u + id.x] = 48u; }
    else if word == 2049u { answer[8u + id.x] = 49u; }
    else if word == 2050u { answer[8u + id.x] = 50u; }
    else if word == 2051u { answer[8u + id.x] = 51u; }
    else if word == 2052u { answer[8u + id.x] = 52u; }
    else if word == 2053u { answer[8u + id.x] = 53u; }
    else if word == 2054u { answer[8u + id.x] = 54u; }
    else if word == 2055u { answer[8u + id.x] = 55u; }
    else if word == 2056u { answer[8u + id.x] = 56u; }
    else if word == 2057u { answer[8u + id.x] = 57u; }
    else if word == 2058u { answer[8u + id.x] = 58u; }
    else if word == 2059u { answer[8u + id.x] = 59u; }
    else if word == 2060u { answer[8u + id.x] = 60u; }
    else if word == 2061u { answer[8u + id.x] = 61u; }
    else if word == 2062u { answer[8u + id.x] = 62u; }
    else if word == 2063u { answer[8u + id.x] = 63u; }
    else if word == 2064u { answer[8u + id.x] = 64u; }
    else if word == 2065u { answer[8u + id.x] = 65u; }
    else if word == 2066u { answer[8u + id.x] = 66u; }
    else if word == 2067u { answer[8u + id.x] = 67u; }
    else if word == 2068u { answer[8u + id.x] = 68u; }
    else if word == 2069u { answer[8u + id.x] = 69u; }
    else if word == 2070u { answer[8u + id.x] = 70u; }
    else if word == 2071u { answer[8u + id.x] = 71u; }
    else if word == 2072u { answer[8u + id.x] = 72u; }
    else if word == 2073u { answer[8u + id.x] = 73u; }
    else if word == 2074u { answer[8u + id.x] = 74u; }
    else if word == 2075u { answer[8u + id.x] = 75u; }
    else if word == 2076u { answer[8u + id.x] = 76u; }
    else if word == 2077u { answer[8u + id.x] = 77u; }
    else if word == 2078u { answer[8u + id.x] = 78u; }
    else if word == 2079u { answer[8u + id.x] = 79u; }
    else if word == 2080u { answer[8u + id.x] = 80u; }
    else if word == 2081u { answer[8u + id.x] = 81u; }
    else if word == 2082u { answer[8u + id.x] = 82u; }
    else if word == 2083u { answer[8u + id.x] = 83u; }
    else if word == 2084u { answer[8u + id.x] = 84u; }
    else if word == 2085u { answer[8u + id.x] = 85u; }
    else if word == 2086u { answer[8u + id.x] = 86u; }
    else if word == 2087u { answer[8u + id.x] = 87u; }
    else if word == 2088u { answer[8u + id.x] = 88u; }
    else if word == 2089u { answer[8u + id.x] = 89u; }
    else if word == 2090u { answer[8u + id.x] = 90u; }
    else if word == 2091u { answer[8u + id.x] = 91u; }
    else if word == 2092u { answer[8u + id.x] = 92u; }
    else if word == 2093u { answer[8u + id.x] = 93u; }
    else if word == 2094u { answer[8u + id.x] = 94u; }
    else if word == 2095u { answer[8u + id.x] = 95u; }
    else if word == 2096u { answer[8u + id.x] = 96u; }
    else if word == 2097u { answer[8u + id.x] = 97u; }
    else if word == 2098u { answer[8u + id.x] = 98u; }
    else if word == 2099u { answer[8u + id.x] = 99u; }
    else { answer[8u + id.x] = 888u; }
}
